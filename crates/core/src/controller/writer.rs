//! The writer: takes all that waits, writes it in one batch, and settles what came of it (spec 10).

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::controller::batch::{Batch, Outcome, Part, Verdict};
use crate::controller::engine::Engine;
use crate::controller::guarded::Core;
use crate::controller::submit::{NotAdoptable, SubmitError};
use crate::linger::linger;
use crate::scheduler::TaskKey;
use crate::snapshot::TaskSnapshot;
use crate::store::{Entry, EntryError, StoreError};
use crate::time::Moment;

/// How long a launch may wait unwritten for what follows.
const COMPANY: Duration = Duration::from_millis(2);
/// How long a store that is down is still tried when the controller closes: a server that has just come back
/// meets connections that it knows nothing of.
const LAST_TRIES: Duration = Duration::from_secs(2);
/// Between two of those tries.
const LAST_PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// The writer's life.
    pub(super) fn write(self: &Arc<Self>) {
        while let Some(mut core) = self.await_work() {
            let now = self.clock.monotonic();
            let Core { journal, scheduler, .. } = &mut *core;
            let batch = journal.take(now, |key| scheduler.snapshot(key));
            self.wake_ticker(&mut core);
            drop(core);
            if batch.entries.is_empty() {
                continue;
            }
            self.renew_if_overdue();
            match self.store.write(&batch.entries) {
                Ok(results) => {
                    let answers = self.answers(batch, results);
                    self.with(|core, now| {
                        let outcomes = core.journal.answered(answers);
                        self.settle_all(core, outcomes, now);
                    });
                }
                Err(error) => {
                    let (message, untenable) = (error.to_string(), self.untenable(&batch, error));
                    self.with(|core, now| {
                        let outcomes = core.journal.failed(batch, &message, now.mono, now.wall);
                        // Before the rest is told that it is recorded.
                        for (key, why) in untenable {
                            reject(core, key, why);
                        }
                        self.settle_all(core, outcomes, now);
                    });
                }
            }
        }
    }

    /// Does the writer have to be woken for what is to be written?
    pub(super) fn is_writer_wanted(&self, core: &mut Core) -> bool {
        let has_work = core.journal.work_at().is_some();
        if has_work {
            self.has_writes.store(true, Ordering::Relaxed);
        }
        core.journal.be_patient(|| Instant::now() + COMPANY);
        let is_wanted = has_work || (!core.writer_watches && core.journal.hurry_at().is_some());
        is_wanted && std::mem::take(&mut core.writer_waits)
    }

    /// The writer's wait for work; `None` when it is to end.
    fn await_work(&self) -> Option<MutexGuard<'_, Core>> {
        let mut core = self.lock();
        let (mut has_lingered, mut has_watched) = (false, false);
        let mut has_given_time = false;
        loop {
            let now = self.clock.monotonic();
            if core.is_over || core.journal.hurry_at().is_some_and(|at| at <= Instant::now()) {
                core.journal.hurry();
            }
            if core.journal.has_work(now) {
                if !std::mem::replace(&mut has_given_time, true) && core.journal.expects_answers() {
                    core = self.look_out(core).0;
                    continue;
                }
                return Some(core);
            }
            if core.is_over {
                let now = Instant::now();
                let is_first = core.last_tries_until.is_none();
                let until = *core.last_tries_until.get_or_insert(now + LAST_TRIES);
                if core.journal.is_empty() || now > until {
                    return None;
                }
                if !is_first {
                    drop(core);
                    thread::sleep(LAST_PAUSE);
                    core = self.lock();
                }
                core.journal.retry_now();
                core.journal.touch_now();
                continue;
            }
            if !std::mem::replace(&mut has_lingered, true) && core.may_look_out() {
                let is_fruitful;
                (core, is_fruitful) = self.look_out(core);
                if is_fruitful {
                    core.in_vain = 0;
                }
                continue;
            }
            // Once more by itself after a batch: what it started may run by then.
            let look_up = match core.journal.hurry_at() {
                Some(at) => Some(at.saturating_duration_since(Instant::now())),
                None => (!std::mem::replace(&mut has_watched, true)).then_some(COMPANY),
            };
            let due = core.journal.work_at().map(|at| at.saturating_sub(now));
            core.writer_waits = true;
            core.writer_watches = look_up.is_some();
            core = match look_up.into_iter().chain(due).min() {
                Some(longest) => {
                    let wait = self.writer.wait_timeout(core, longest);
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.writer.wait(core).unwrap_or_else(PoisonError::into_inner),
            };
            core.writer_waits = false;
            core.writer_watches = false;
        }
    }

    /// Looks out for something to write, without the lock; `true` once there is some.
    fn look_out<'a>(&'a self, core: MutexGuard<'a, Core>) -> (MutexGuard<'a, Core>, bool) {
        self.has_writes.store(false, Ordering::Relaxed);
        drop(core);
        let is_fruitful = linger(|| self.has_writes.load(Ordering::Relaxed));
        (self.lock(), is_fruitful)
    }

    /// The store answers again: what it did not take is offered to it at once.
    pub(super) fn retry_writes(&self) {
        let mut core = self.lock();
        if core.journal.is_down() {
            core.journal.retry_now();
            self.writer.notify_one();
        }
    }

    /// Tells the scheduler (and whoever submitted) what came of a write.
    pub(super) fn settle(&self, core: &mut Core, outcome: Outcome, now: Moment) {
        match outcome {
            Outcome::Stored(key, version) | Outcome::Recorded(key, version) => {
                if let Some(payload) = core.scheduler.payload(key)
                    && payload.completion.accept()
                {
                    core.to_wake.push(Arc::clone(&payload.completion));
                }
                core.scheduler.settled(key, version, now, &mut core.out);
            }
            Outcome::Refused(key, error) => self.refused(core, key, &error, now),
        }
    }

    /// The same for each of them.
    pub(super) fn settle_all(&self, core: &mut Core, outcomes: Vec<Outcome>, now: Moment) {
        for outcome in outcomes {
            self.settle(core, outcome, now);
        }
    }

    /// A refusal may only mean that an earlier write, whose outcome is unknown, was stored after all. Gives
    /// back here, without the lock, what was written.
    fn answers(&self, batch: Batch, results: Vec<Result<(), EntryError>>) -> Vec<(Part, Verdict)> {
        let mut answers = Vec::with_capacity(results.len());
        for ((part, entry), result) in batch.parts.into_iter().zip(batch.entries).zip(results) {
            let verdict = match result {
                Ok(()) => Verdict::Stored,
                Err(error) => match part.uncertain.then(|| self.own_write(&entry)).flatten() {
                    Some(version) => Verdict::StoredBefore(version, entry.into_rows_after(version)),
                    None => Verdict::Refused(error),
                },
            };
            answers.push((part, verdict));
        }
        answers
    }

    /// Of a write that failed as a whole: the submissions that cannot stand, as far as the store can be read.
    /// A task that exists is not made, and one that could not be taken over in writing is not ours: while
    /// nobody can write, its holder looks dead, and may be alive.
    fn untenable(&self, batch: &Batch, error: StoreError) -> Vec<(TaskKey, SubmitError)> {
        let error = Arc::new(error);
        let mut untenable = Vec::new();
        for (part, entry) in batch.parts.iter().zip(&batch.entries) {
            let is_adoption = match entry {
                Entry::Create { .. } => false,
                Entry::Save { if_expired: Some(_), .. } => true,
                Entry::Save { if_expired: None, .. } | Entry::Touch(_) => continue,
            };
            let id = entry.task_id();
            // A store that cannot be read, either, would keep us waiting for each of them.
            let Ok(stored) = self.store.get(id) else { break };
            let is_ours =
                |task: &TaskSnapshot| task.supervisor.as_ref() == Some(self.incarnation());
            match stored {
                Some(task) if is_ours(&task) => {}
                Some(_) | None if is_adoption => {
                    untenable.push((part.key, SubmitError::Store(Arc::clone(&error))));
                }
                Some(_) => {
                    let (id, why) = (id.clone(), NotAdoptable::Raced);
                    untenable.push((part.key, SubmitError::Exists { id, why }));
                }
                None => {}
            }
        }
        untenable
    }

    /// The stored version of a task, if it is one of those that this entry would write, by us.
    fn own_write(&self, entry: &Entry) -> Option<u64> {
        let (Entry::Create { transitions, .. } | Entry::Save { transitions, .. }) = entry else {
            return None;
        };
        let stored = self.store.get(entry.task_id()).ok()??;
        let version = stored.status_version();
        let row = transitions.iter().find(|row| row.version == version)?;
        let is_ours = stored.supervisor.as_ref() == Some(self.incarnation());
        (is_ours && stored.status() == row.to).then_some(version)
    }

    /// Somebody else has this id, or writes this task.
    fn refused(&self, core: &mut Core, key: TaskKey, error: &EntryError, now: Moment) {
        let Some(payload) = core.scheduler.payload(key) else {
            // Its end was published as recorded, not as written; nothing is left to stop, but the store says
            // otherwise.
            core.desynced.extend(core.journal.forget(key));
            return;
        };
        if payload.completion.is_accepted() {
            let reason = format!("another process writes this task: {error}");
            self.disown(core, key, reason.as_str().into(), now);
        } else {
            let id = core.scheduler.snapshot(key).map(|task| task.id.clone());
            if let Some(id) = id {
                reject(core, key, SubmitError::Exists { id, why: NotAdoptable::Raced });
            }
        }
    }
}

/// Nothing comes of a submission that nobody was told to be taken in.
fn reject(core: &mut Core, key: TaskKey, error: SubmitError) {
    if core.scheduler.payload(key).is_none_or(|payload| payload.completion.is_accepted()) {
        return;
    }
    core.journal.forget(key);
    if let Some((_, payload)) = core.scheduler.withdraw(key) {
        payload.completion.reject(error);
    }
}
