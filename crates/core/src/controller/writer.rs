//! The writer: takes all that waits, writes it in one batch, and settles what came of it (spec 10).

use std::sync::Arc;

use crate::controller::engine::Engine;
use crate::controller::guarded::Core;
use crate::controller::journal::{Batch, Outcome, Verdict};
use crate::controller::submit::{NotAdoptable, SubmitError};
use crate::scheduler::TaskKey;
use crate::snapshot::TaskSnapshot;
use crate::store::{Entry, EntryError, StoreError};
use crate::time::Moment;

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
            let written = self.store.write(&batch.entries);
            let written = written
                .map(|results| self.verdicts(&batch, results))
                .map_err(|error| (error.to_string(), self.untenable(&batch, error)));
            self.with(|core, now| {
                let outcomes = match written {
                    Ok(verdicts) => core.journal.answered(batch, verdicts),
                    Err((error, untenable)) => {
                        // Before the rest is told that it is recorded.
                        let outcomes = core.journal.failed(batch, &error, now.mono, now.wall);
                        for (key, why) in untenable {
                            reject(core, key, why);
                        }
                        outcomes
                    }
                };
                for outcome in outcomes {
                    self.settle(core, outcome, now);
                }
            });
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

    /// A refusal may only mean that an earlier write, whose outcome is unknown, was stored after all.
    fn verdicts(&self, batch: &Batch, results: Vec<Result<(), EntryError>>) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(results.len());
        for ((part, entry), result) in batch.parts.iter().zip(&batch.entries).zip(results) {
            verdicts.push(match result {
                Ok(()) => Verdict::Stored,
                Err(error) if part.uncertain => {
                    self.own_write(entry).map_or(Verdict::Refused(error), Verdict::StoredBefore)
                }
                Err(error) => Verdict::Refused(error),
            });
        }
        verdicts
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
