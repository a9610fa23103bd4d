//! What waits of one task, and what the store has of it.

use std::sync::Arc;

use crate::id::TaskId;
use crate::snapshot::TaskSnapshot;
use crate::store::{Entry, Now};
use crate::transition::Transition;

/// What the store has of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// Nothing: the next write creates it.
    Nothing,
    /// Nothing of ours: somebody's task has this id, which the next write will be told.
    Taken,
    /// This version; the next write takes the task over from a holder that is gone.
    ToAdopt(u64),
    /// This version.
    Version(u64),
}

/// A task, and what is not written of it yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: TaskId,
    pub(super) stored: Stored,
    pub(super) rows: Vec<Transition>,
    pub(super) touched: bool,
    pub(super) queued: bool,
    /// The version that a write under way takes along.
    pub(super) in_flight: Option<u64>,
    /// Some write of its rows failed without telling how much of it was stored.
    pub(super) uncertain: bool,
    /// Its last state, once the scheduler has forgotten it.
    pub(super) left: Option<Arc<TaskSnapshot>>,
}

impl Pending {
    /// Its next write, with this state: takes the rows that wait.
    pub(super) fn entry(&mut self, snapshot: Arc<TaskSnapshot>) -> Entry {
        let transitions = std::mem::take(&mut self.rows);
        match self.stored {
            Stored::Nothing | Stored::Taken => Entry::Create { snapshot, transitions },
            Stored::ToAdopt(version) => Entry::Save {
                snapshot,
                expect_version: version,
                transitions,
                if_expired: Some(Now::Store),
            },
            Stored::Version(version) => {
                Entry::Save { snapshot, expect_version: version, transitions, if_expired: None }
            }
        }
    }
}
