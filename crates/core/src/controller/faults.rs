//! What the store could not take when it should have.

use std::collections::VecDeque;

use crate::id::TaskId;
use crate::time::Timestamp;

/// Most reports that are kept.
const MAX_FAULTS: usize = 1000;

/// A fault of the store: what could not be written when it should have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistFailure {
    /// The task; `None` for the node's own row and commands.
    pub task_id: Option<TaskId>,
    /// The version that was not written.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// What the store said.
    pub error: String,
    /// The buffer was full: these rows will never be written.
    pub dropped: bool,
}

/// The latest faults.
#[derive(Debug, Default)]
pub(super) struct Faults(VecDeque<PersistFailure>);

impl Faults {
    /// Oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PersistFailure> {
        self.0.iter()
    }

    /// Remembers a fault; the same one again, such as at every poll of a dead server, counts once.
    pub(super) fn add(&mut self, fault: PersistFailure) {
        let is_repeated = |last: &PersistFailure| {
            fault.task_id.is_none() && last.task_id.is_none() && last.error == fault.error
        };
        if self.0.back().is_some_and(is_repeated) {
            return;
        }
        if self.0.len() == MAX_FAULTS {
            self.0.pop_front();
        }
        self.0.push_back(fault);
    }
}
