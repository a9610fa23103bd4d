//! How a run ended: every node with its last state.

use std::fmt;
use std::sync::Arc;

use chongming_core::{Outcome, Status, Text};

use crate::join::Join;

/// How a pipeline ended, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PipelineStatus {
    /// No node failed or was cancelled.
    Succeeded,
    /// A node was cancelled, and none failed.
    Cancelled,
    /// A node failed, was stopped or is lost, whatever ran after it.
    Failed,
}

impl PipelineStatus {
    /// The word that JSON and tables use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// What one node's end makes of the whole; the worst of them counts.
    #[must_use]
    pub const fn of(status: Status) -> Self {
        match status {
            Status::Succeeded | Status::Skipped => Self::Succeeded,
            Status::Cancelled => Self::Cancelled,
            Status::Failed | Status::Lost | Status::Stopped => Self::Failed,
            // No end at all: nothing good can be claimed.
            Status::Pending
            | Status::Blocked
            | Status::Queued
            | Status::RetryWait
            | Status::Starting
            | Status::Running
            | Status::Pausing
            | Status::Paused
            | Status::Stopping => Self::Failed,
        }
    }
}

impl fmt::Display for PipelineStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One node at the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOutcome {
    /// The node's id within the pipeline.
    pub node: Text,
    /// Its upstream nodes.
    pub depends_on: Vec<Text>,
    /// When it could start.
    pub join: Join,
    /// How its task ended.
    pub outcome: Arc<Outcome>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineOutcome {
    /// The pipeline's name.
    pub pipeline: Text,
    /// The run's id, with which the ids of its tasks begin.
    pub run_id: Text,
    /// How it ended.
    pub status: PipelineStatus,
    /// Every node, in the order in which they were added.
    pub nodes: Vec<NodeOutcome>,
}

impl PipelineOutcome {
    /// Did it succeed?
    #[must_use]
    pub fn ok(&self) -> bool {
        self.status == PipelineStatus::Succeeded
    }

    /// The node of this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&NodeOutcome> {
        self.nodes.iter().find(|node| &*node.node == id)
    }
}
