//! What is not written yet (spec 10): pure, so that its tests need no store that fails on cue.
//!
//! For each task: the version that is really stored, and the audit rows since. A batch takes all that
//! waits; what several transitions of one task left behind becomes one save with all their rows. Nothing
//! that anybody depends on is held back to make a batch. Only touches wait, for a moment, since only the
//! latest counts; and launches, for a shorter one, since the end of a short attempt brings them along. The
//! writer looks out for some microseconds, too, where all that waits is about to be answered.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::controller::batch::{Batch, Outcome, Part, Verdict};
use crate::controller::faults::{Faults, PersistFailure};
use crate::id::TaskId;
use crate::scheduler::{KeyHasher, TaskKey};
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::time::Timestamp;
use crate::transition::{Transition, Trigger};

mod pending;
#[cfg(test)]
mod tests;

use pending::{Pending, Stored};

/// How long a touch may wait for company.
const TOUCH_DELAY: Duration = Duration::from_millis(200);
/// Pause between two attempts to reach a store that failed: the first, and the longest.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Most tasks in one batch.
const MAX_BATCH: usize = 2048;

#[derive(Debug)]
pub(super) struct Journal {
    pending: HashMap<TaskKey, Pending, BuildHasherDefault<KeyHasher>>,
    queue: VecDeque<TaskKey>,
    /// Launches that may wait for company, and until when: the latest of them have not been told yet.
    patient: VecDeque<(Instant, TaskKey)>,
    launched: Vec<TaskKey>,
    touches: Vec<TaskKey>,
    touch_at: Option<Duration>,
    rows: usize,
    max_rows: usize,
    patience: Duration,
    /// Since when a write has been under way.
    writing: Option<Duration>,
    down: Option<Down>,
    pub(super) faults: Faults,
}

#[derive(Clone, Debug)]
struct Down {
    error: String,
    retry_at: Duration,
    delay: Duration,
}

impl Journal {
    /// `patience`: how long a write may stay unanswered; `max_rows`: how much may wait unwritten.
    pub(super) fn new(patience: Duration, max_rows: usize) -> Self {
        Self {
            pending: HashMap::default(),
            queue: VecDeque::new(),
            patient: VecDeque::new(),
            launched: Vec::new(),
            touches: Vec::new(),
            touch_at: None,
            rows: 0,
            max_rows,
            patience,
            writing: None,
            down: None,
            faults: Faults::default(),
        }
    }

    /// A task of which the store has nothing, or (to be adopted) this version.
    pub(super) fn open(&mut self, key: TaskKey, id: TaskId, adopt: Option<u64>) {
        let stored = adopt.map_or(Stored::Nothing, Stored::ToAdopt);
        self.pending.insert(
            key,
            Pending {
                id,
                stored,
                rows: Vec::new(),
                touched: false,
                queued: false,
                in_flight: None,
                uncertain: false,
                left: None,
            },
        );
    }

    /// A task that was to be created: somebody else's has its id.
    pub(super) fn mark_taken(&mut self, key: TaskKey) {
        if let Some(pending) = self.pending.get_mut(&key)
            && pending.stored == Stored::Nothing
        {
            pending.stored = Stored::Taken;
        }
    }

    /// A transition to write.
    pub(super) fn record(&mut self, key: TaskKey, transition: Transition, at: Timestamp) {
        let Some(pending) = self.pending.get_mut(&key) else { return };
        let is_patient = transition.trigger == Trigger::Launched && pending.rows.is_empty();
        pending.rows.push(transition);
        self.rows += 1;
        if !pending.queued && pending.in_flight.is_none() {
            if is_patient {
                self.launched.push(key);
            } else {
                pending.queued = true;
                self.queue.push_back(key);
            }
        }
        if self.rows > self.max_rows {
            self.drop_oldest(at);
        }
    }

    /// Progress or heartbeat to write.
    pub(super) fn touch(&mut self, key: TaskKey, now: Duration) {
        let Some(pending) = self.pending.get_mut(&key).filter(|pending| !pending.touched) else {
            return;
        };
        pending.touched = true;
        self.touches.push(key);
        self.touch_at.get_or_insert(now.saturating_add(TOUCH_DELAY));
    }

    /// The scheduler forgets the task; this was its last state.
    pub(super) fn leave(&mut self, key: TaskKey, snapshot: &Arc<TaskSnapshot>) {
        if let Some(pending) = self.pending.get_mut(&key) {
            if pending.rows.is_empty() && pending.in_flight.is_none() {
                self.pending.remove(&key);
            } else {
                pending.left = Some(Arc::clone(snapshot));
            }
        }
    }

    /// Writes nothing more of this task.
    pub(super) fn forget(&mut self, key: TaskKey) -> Option<TaskId> {
        let pending = self.pending.remove(&key)?;
        self.rows -= pending.rows.len();
        Some(pending.id)
    }

    /// Is there something to write by now?
    pub(super) fn has_work(&self, now: Duration) -> bool {
        self.writing.is_none() && self.work_at().is_some_and(|at| at <= now)
    }

    /// Have the carriers of all that waits just been told something? Most bodies answer within microseconds,
    /// and then what they were told and what came of it are one write.
    pub(super) fn expects_answers(&self) -> bool {
        let told = |key| {
            let latest = self.pending.get(key).and_then(|pending| pending.rows.last());
            latest.is_some_and(|row| matches!(row.to, Status::Stopping | Status::Pausing))
        };
        !self.queue.is_empty() && self.queue.iter().all(told)
    }

    /// When there will be something to write.
    pub(super) fn work_at(&self) -> Option<Duration> {
        let rows = (!self.queue.is_empty()).then_some(Duration::ZERO);
        let earliest = rows.into_iter().chain(self.touch_at).min()?;
        Some(self.down.as_ref().map_or(earliest, |down| earliest.max(down.retry_at)))
    }

    /// Tells the latest launches how long they may wait to be written together with what follows. Nobody depends
    /// on them: the attempt's start is written before, and its end brings the launch along.
    pub(super) fn be_patient(&mut self, until: impl FnOnce() -> Instant) {
        if !self.launched.is_empty() {
            let until = until();
            self.patient.extend(self.launched.drain(..).map(|key| (until, key)));
        }
    }

    /// When the first launch that still waits for company has waited long enough.
    pub(super) fn hurry_at(&mut self) -> Option<Instant> {
        while let Some((until, key)) = self.patient.front() {
            let waits = |p: &Pending| !p.queued && p.in_flight.is_none() && !p.rows.is_empty();
            if self.pending.get(key).is_some_and(waits) {
                return Some(*until);
            }
            self.patient.pop_front();
        }
        None
    }

    /// Nothing waits for company any longer.
    pub(super) fn hurry(&mut self) {
        let launched = std::mem::take(&mut self.launched);
        let patient = std::mem::take(&mut self.patient);
        for key in patient.into_iter().map(|(_, key)| key).chain(launched) {
            self.go_on(key);
        }
    }

    /// Did the latest write fail, or not come back?
    pub(super) const fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// Tries a store that is down at once.
    pub(super) fn retry_now(&mut self) {
        if let Some(down) = &mut self.down {
            down.retry_at = Duration::ZERO;
        }
    }

    /// Touches wait for no more company.
    pub(super) fn touch_now(&mut self) {
        self.touch_at = self.touch_at.map(|_| Duration::ZERO);
    }

    /// Takes all that waits; `snapshot` tells the current state of a task that the scheduler still has.
    pub(super) fn take<'a>(
        &mut self,
        now: Duration,
        snapshot: impl Fn(TaskKey) -> Option<&'a Arc<TaskSnapshot>>,
    ) -> Batch {
        let mut batch = Batch::default();
        while batch.parts.len() < MAX_BATCH
            && let Some(key) = self.queue.pop_front()
        {
            let Some(pending) = self.pending.get_mut(&key) else { continue };
            pending.queued = false;
            let state = pending.left.as_ref().or_else(|| snapshot(key)).cloned();
            let Some(state) = state.filter(|_| !pending.rows.is_empty()) else { continue };
            if std::mem::take(&mut pending.touched) {
                batch.touch(key, &state);
            }
            let version = Some(state.status_version());
            pending.in_flight = version;
            let (rows, uncertain) = (pending.rows.len(), pending.uncertain);
            batch.parts.push(Part { key, version, rows, uncertain });
            batch.entries.push(pending.entry(state));
        }
        if self.touch_at.is_some_and(|at| at <= now) {
            self.touch_at = None;
            for key in std::mem::take(&mut self.touches) {
                let Some(pending) = self.pending.get_mut(&key) else { continue };
                // Before its creation is stored there is nothing to touch.
                let is_stored = matches!(pending.stored, Stored::Version(_));
                if std::mem::take(&mut pending.touched)
                    && is_stored
                    && let Some(state) = snapshot(key)
                {
                    batch.touch(key, state);
                }
            }
        }
        self.writing = (!batch.entries.is_empty()).then_some(now);
        batch
    }

    /// A write was answered, with this for each of its parts.
    pub(super) fn answered(&mut self, answers: Vec<(Part, Verdict)>) -> Vec<Outcome> {
        self.writing = None;
        self.down = None;
        let mut outcomes = Vec::with_capacity(answers.len());
        for (part, verdict) in answers {
            let Some(version) = part.version else { continue };
            self.rows -= part.rows;
            let Some(pending) = self.pending.get_mut(&part.key) else { continue };
            pending.in_flight = None;
            let stored = match verdict {
                Verdict::Stored => version,
                Verdict::StoredBefore(version, rest) => {
                    self.rows += rest.len();
                    pending.rows.splice(0..0, rest);
                    version
                }
                Verdict::Refused(error) => {
                    outcomes.push(Outcome::Refused(part.key, error));
                    continue;
                }
            };
            pending.stored = Stored::Version(stored);
            pending.uncertain = false;
            outcomes.push(Outcome::Stored(part.key, stored));
            self.go_on(part.key);
        }
        outcomes
    }

    /// The whole write failed: everything goes back into the buffer, and the store counts as down.
    pub(super) fn failed(
        &mut self,
        batch: Batch,
        error: &str,
        now: Duration,
        at: Timestamp,
    ) -> Vec<Outcome> {
        self.writing = None;
        let (first, longest) = RETRY_DELAY;
        let delay = self.down.as_ref().map_or(first, |down| (down.delay * 2).min(longest));
        let retry_at = now.saturating_add(delay);
        self.down = Some(Down { error: error.to_owned(), retry_at, delay });
        for (part, entry) in batch.parts.into_iter().zip(batch.entries) {
            if part.version.is_none() {
                self.touch(part.key, now);
                continue;
            }
            let Some(pending) = self.pending.get_mut(&part.key) else {
                self.rows -= part.rows;
                continue;
            };
            pending.in_flight = None;
            pending.uncertain = true;
            pending.rows.splice(0..0, entry.into_rows());
            self.go_on(part.key);
        }
        self.record_all(at)
    }

    /// When a write that is under way has taken too long.
    pub(super) fn stalls_at(&self) -> Option<Duration> {
        let since = self.writing.filter(|_| self.down.is_none())?;
        Some(since.saturating_add(self.patience))
    }

    /// A write has been unanswered for too long: the store counts as down, what waits is recorded.
    pub(super) fn stalled(&mut self, now: Duration, at: Timestamp) -> Vec<Outcome> {
        let error = format!("the store did not answer within {:?}", self.patience);
        self.down = Some(Down { error, retry_at: now, delay: RETRY_DELAY.0 });
        self.record_all(at)
    }

    /// While the store is down: what the latest transitions left unwritten is recorded at once.
    pub(super) fn record_while_down(&mut self, key: TaskKey, at: Timestamp) -> Option<Outcome> {
        self.down.is_some().then(|| self.record_fault(key, at)).flatten()
    }

    /// Tasks with something unwritten.
    pub(super) fn unwritten(&self) -> usize {
        self.pending.values().filter(|p| p.in_flight.is_some() || !p.rows.is_empty()).count()
    }

    /// Is nothing left to write?
    pub(super) fn is_empty(&self) -> bool {
        let is_nobody_patient = self.patient.is_empty() && self.launched.is_empty();
        self.queue.is_empty() && is_nobody_patient && self.touch_at.is_none()
    }

    /// Does the store have this task, as ours?
    pub(super) fn is_stored(&self, key: TaskKey) -> bool {
        self.pending.get(&key).is_some_and(|p| matches!(p.stored, Stored::Version(_)))
    }

    /// The same, or may the store have it by now, with a write that was not answered yet?
    pub(super) fn may_be_stored(&self, key: TaskKey) -> bool {
        self.pending.get(&key).is_some_and(|pending| match pending.stored {
            Stored::Version(_) => true,
            Stored::Nothing => pending.in_flight.is_some() || pending.uncertain,
            Stored::Taken | Stored::ToAdopt(_) => false,
        })
    }

    fn record_all(&mut self, at: Timestamp) -> Vec<Outcome> {
        let open: Vec<_> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.in_flight.is_some() || !pending.rows.is_empty())
            .map(|(key, _)| *key)
            .collect();
        open.into_iter().filter_map(|key| self.record_fault(key, at)).collect()
    }

    fn record_fault(&mut self, key: TaskKey, at: Timestamp) -> Option<Outcome> {
        let error = self.down.as_ref()?.error.clone();
        let pending = self.pending.get(&key)?;
        match pending.stored {
            Stored::Nothing | Stored::Version(_) => {}
            // Not ours before that is written: it waits, and nothing starts.
            Stored::Taken | Stored::ToAdopt(_) => return None,
        }
        let version = pending.rows.last().map(|row| row.version).or(pending.in_flight)?;
        let task_id = Some(pending.id.clone());
        self.faults.add(PersistFailure { task_id, version, at, error, dropped: false });
        Some(Outcome::Recorded(key, version))
    }

    /// After a write: a task that has more goes on waiting; one that is done is forgotten.
    fn go_on(&mut self, key: TaskKey) {
        let Some(pending) = self.pending.get_mut(&key) else { return };
        if pending.in_flight.is_some() {
            return;
        }
        if !pending.rows.is_empty() {
            if !pending.queued {
                pending.queued = true;
                self.queue.push_back(key);
            }
        } else if pending.left.is_some() {
            self.pending.remove(&key);
        }
    }

    /// The buffer is full: the rows that have waited longest are given up, and that is recorded.
    fn drop_oldest(&mut self, at: Timestamp) {
        let Some(key) = self.queue.front().copied() else { return };
        let Some(pending) = self.pending.get_mut(&key) else { return };
        let has_ended = pending.left.is_some();
        // The state of a task that lives on is still to be written; of one that has ended, nothing is.
        let keep = if has_ended { 0 } else { 1 };
        let dropped = pending.rows.len().saturating_sub(keep);
        self.queue.rotate_left(1);
        if dropped == 0 {
            return;
        }
        pending.rows.drain(..dropped);
        self.rows -= dropped;
        let version = pending.rows.last().map_or(0, |row| row.version);
        let error = "the buffer of unwritten transitions is full".to_owned();
        let task_id = Some(pending.id.clone());
        if has_ended {
            self.queue.pop_back();
            self.pending.remove(&key);
        }
        self.faults.add(PersistFailure { task_id, version, at, error, dropped: true });
    }
}
