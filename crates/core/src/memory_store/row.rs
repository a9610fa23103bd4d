//! One task row with its trail.

use std::sync::Arc;

use crate::id::TaskId;
use crate::snapshot::{Progress, TaskSnapshot};
use crate::status::Status;
use crate::store::Touch;
use crate::text::Text;
use crate::time::Timestamp;
use crate::transition::{Transition, Trigger};

pub(super) struct Row {
    /// Shared with whoever wrote it; without lease, progress and heartbeat.
    state: Arc<TaskSnapshot>,
    progress: Option<Box<Progress>>,
    heartbeat_at: Option<Timestamp>,
    /// Ascending versions.
    trail: Vec<Step>,
}

/// A transition without what its row says already: there are many of them.
struct Step {
    version: u64,
    from: Status,
    to: Status,
    trigger: Trigger,
    at: Timestamp,
    reason: Option<Text>,
}

impl Row {
    pub(super) fn new(state: &Arc<TaskSnapshot>, trail: &[Transition]) -> Self {
        let state = without_side_channel(Arc::clone(state));
        let mut row = Self { state, progress: None, heartbeat_at: None, trail: Vec::new() };
        row.append(trail);
        row
    }

    /// What a save wrote, for filters.
    pub(super) fn state(&self) -> &TaskSnapshot {
        &self.state
    }

    /// The whole task, but for its lease.
    pub(super) fn task(&self) -> TaskSnapshot {
        TaskSnapshot {
            progress: self.progress.clone(),
            last_heartbeat_at: self.heartbeat_at,
            ..(*self.state).clone()
        }
    }

    pub(super) fn history(&self, after: u64, limit: usize) -> Vec<Transition> {
        let start = self.trail.partition_point(|step| step.version <= after);
        let steps = self.trail.iter().skip(start).take(limit);
        steps.map(|step| step.of(&self.state.id)).collect()
    }

    /// Takes over the new version, but for what only a submission or a touch writes.
    pub(super) fn save(&mut self, new: &Arc<TaskSnapshot>, trail: &[Transition]) {
        let old = std::mem::replace(&mut self.state, without_side_channel(Arc::clone(new)));
        let is_as_submitted = self.state.name == old.name
            && self.state.bucket == old.bucket
            && self.state.bucket_key == old.bucket_key
            && self.state.created_at == old.created_at;
        if !is_as_submitted {
            let state = Arc::make_mut(&mut self.state);
            state.name = old.name.clone();
            state.bucket = old.bucket;
            state.bucket_key.clone_from(&old.bucket_key);
            state.created_at = old.created_at;
        }
        self.append(trail);
    }

    pub(super) fn touch(&mut self, touch: &Touch) {
        if let Some(progress) = &touch.progress {
            self.progress = Some(progress.clone());
        }
        if touch.heartbeat_at.is_some() {
            self.heartbeat_at = touch.heartbeat_at;
        }
    }

    fn append(&mut self, trail: &[Transition]) {
        for transition in trail {
            let step = Step::from(transition);
            if self.trail.last().is_none_or(|last| last.version < step.version) {
                self.trail.push(step);
            } else if let Err(place) =
                self.trail.binary_search_by_key(&step.version, |step| step.version)
            {
                self.trail.insert(place, step);
            }
        }
    }
}

impl From<&Transition> for Step {
    fn from(transition: &Transition) -> Self {
        let Transition { task_id: _, version, from, to, at, trigger, reason } = transition;
        Self {
            version: *version,
            from: *from,
            to: *to,
            trigger: *trigger,
            at: *at,
            reason: reason.clone(),
        }
    }
}

impl Step {
    fn of(&self, task: &TaskId) -> Transition {
        let Self { version, from, to, trigger, at, reason } = self;
        Transition {
            task_id: task.clone(),
            version: *version,
            from: *from,
            to: *to,
            at: *at,
            trigger: *trigger,
            reason: reason.clone(),
        }
    }
}

/// Copies only where there is something to leave out.
fn without_side_channel(mut state: Arc<TaskSnapshot>) -> Arc<TaskSnapshot> {
    let is_bare = state.progress.is_none()
        && state.last_heartbeat_at.is_none()
        && state.lease_until.is_none();
    if !is_bare {
        let state = Arc::make_mut(&mut state);
        state.progress = None;
        state.last_heartbeat_at = None;
        state.lease_until = None;
    }
    state
}
