//! The writer: takes all that waits, writes it in one batch, and settles what came of it (spec 10).

use std::sync::Arc;

use crate::controller::engine::Engine;
use crate::controller::guarded::Core;
use crate::controller::journal::{Batch, Outcome, Verdict};
use crate::controller::submit::{NotAdoptable, SubmitError};
use crate::scheduler::TaskKey;
use crate::store::{Entry, EntryError};
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
            let written = written.map(|results| self.verdicts(&batch, results));
            self.with(|core, now| {
                let outcomes = match written {
                    Ok(verdicts) => core.journal.answered(batch, verdicts),
                    Err(error) => {
                        core.journal.failed(batch, &error.to_string(), now.mono, now.wall)
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
                if let Some(payload) = core.scheduler.payload_mut(key)
                    && !std::mem::replace(&mut payload.is_accepted, true)
                {
                    payload.completion.accept();
                }
                core.scheduler.settled(key, version, now, &mut core.out);
            }
            Outcome::Refused(key, error) => refused(core, key, &error, now),
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
}

/// Somebody else has this id, or writes this task.
fn refused(core: &mut Core, key: TaskKey, error: &EntryError, now: Moment) {
    let Some(payload) = core.scheduler.payload(key) else {
        // Its end was published as recorded, not as written; nothing is left to stop.
        core.journal.forget(key);
        return;
    };
    if payload.is_accepted {
        if let Some(task) = core.scheduler.snapshot(key) {
            core.desynced.push(task.id.clone());
        }
        core.journal.forget(key);
        let reason = format!("another process writes this task: {error}");
        core.scheduler.disown(key, reason.as_str().into(), now, &mut core.out);
    } else {
        core.journal.forget(key);
        if let Some((snapshot, payload)) = core.scheduler.withdraw(key) {
            let (id, why) = (snapshot.id.clone(), NotAdoptable::Raced);
            payload.completion.reject(SubmitError::Exists { id, why });
        }
    }
}
