//! What is written to a store: independent entries, many to a batch (spec 9).

use std::sync::Arc;

use crate::id::TaskId;
use crate::snapshot::{Progress, TaskSnapshot};
use crate::time::Timestamp;
use crate::transition::Transition;
use crate::value::InvalidValue;

/// Whose time decides about leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// The store's own clock: what controllers use, so that skewed node clocks kill no healthy task.
    Store,
    /// This time: for tests.
    At(Timestamp),
}

/// One entry of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A task that the store does not have yet, with the trail that led to this version.
    Create {
        /// Its state; lease, progress and heartbeat are ignored.
        snapshot: Arc<TaskSnapshot>,
        /// Audit rows up to the snapshot's version.
        transitions: Vec<Transition>,
    },
    /// A new version of a stored task, with the trail since the stored one.
    Save {
        /// Its new state; lease, progress and heartbeat are ignored.
        snapshot: Arc<TaskSnapshot>,
        /// The version that must be stored, exactly.
        expect_version: u64,
        /// Audit rows up to the snapshot's version; a (task, version) that exists is skipped.
        transitions: Vec<Transition>,
        /// Only if the stored holder's lease has expired by this clock, judged together with the version.
        if_expired: Option<Now>,
    },
    /// The high-frequency side channel: never moves the version.
    Touch(Touch),
}

/// Progress and heartbeat of a running task; `None` leaves what is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// Whose.
    pub task_id: TaskId,
    /// New progress.
    pub progress: Option<Box<Progress>>,
    /// New sign of life.
    pub heartbeat_at: Option<Timestamp>,
}

impl Entry {
    /// Can every store keep it? Callers make sure of it; stores call this before they write, so that none
    /// of them turns a number into something else in silence.
    ///
    /// # Errors
    /// [`InvalidValue`] for a value or a progress that JSON cannot express.
    pub fn check(&self) -> Result<(), InvalidValue> {
        match self {
            Self::Create { snapshot, .. } | Self::Save { snapshot, .. } => {
                snapshot.value.as_ref().map_or(Ok(()), |value| value.check())
            }
            Self::Touch(touch) => touch.progress.as_ref().map_or(Ok(()), |progress| {
                let mut numbers = [Some(progress.done), progress.total].into_iter().flatten();
                match numbers.find(|number| !number.is_finite()) {
                    Some(number) => {
                        Err(InvalidValue::new(format!("a progress of {number} has no JSON form")))
                    }
                    None => Ok(()),
                }
            }),
        }
    }

    /// The task that it concerns.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        match self {
            Self::Create { snapshot, .. } | Self::Save { snapshot, .. } => &snapshot.id,
            Self::Touch(touch) => &touch.task_id,
        }
    }
}

/// What to prune: ended tasks with their trail and commands, and node rows nobody needs (spec 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRequest {
    /// Tasks that ended, and leases that expired, before this time.
    pub before: Timestamp,
    /// At most this many tasks in one call, so that no transaction grows without limit.
    pub limit: usize,
    /// Only count.
    pub dry_run: bool,
}

/// What was (or would be) pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Tasks.
    pub tasks: usize,
    /// Node rows.
    pub nodes: usize,
}
