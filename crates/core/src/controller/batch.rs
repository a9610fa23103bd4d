//! What one write takes along, and what comes of it.

use crate::scheduler::TaskKey;
use crate::snapshot::TaskSnapshot;
use crate::store::{Entry, EntryError, Touch};
use crate::transition::Transition;

/// What one write takes along.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    /// One for each entry.
    pub(super) parts: Vec<Part>,
}

/// Whose an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) key: TaskKey,
    /// The version that it brings; a touch has none.
    pub(super) version: Option<u64>,
    /// How many audit rows it brings.
    pub(super) rows: usize,
    /// An earlier write of these rows may have been stored.
    pub(super) uncertain: bool,
}

/// How the store answered one entry, as far as the writer could find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted.
    Stored,
    /// Refused, but only because an earlier write of unknown outcome had been stored at this version; these
    /// rows came later.
    StoredBefore(u64, Vec<Transition>),
    /// Refused.
    Refused(EntryError),
}

/// What came of one task's part of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Written up to this version.
    Stored(TaskKey, u64),
    /// Recorded as not written up to this version; it stays in the buffer.
    Recorded(TaskKey, u64),
    /// The store had another answer.
    Refused(TaskKey, EntryError),
}

impl Batch {
    pub(super) fn touch(&mut self, key: TaskKey, state: &TaskSnapshot) {
        self.parts.push(Part { key, version: None, rows: 0, uncertain: false });
        self.entries.push(Entry::Touch(Touch {
            task_id: state.id.clone(),
            progress: state.progress.clone(),
            heartbeat_at: state.last_heartbeat_at,
        }));
    }
}

impl Entry {
    pub(super) fn into_rows(self) -> Vec<Transition> {
        match self {
            Self::Create { transitions, .. } | Self::Save { transitions, .. } => transitions,
            Self::Touch(_) => Vec::new(),
        }
    }

    /// Those of its audit rows that came after this version.
    pub(super) fn into_rows_after(self, version: u64) -> Vec<Transition> {
        let mut rows = self.into_rows();
        rows.retain(|row| row.version > version);
        rows
    }
}
