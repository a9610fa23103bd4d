//! Everything the product knows about one task at one moment (spec 1).

use std::sync::Arc;

use crate::failure::Failure;
use crate::id::{IncarnationId, TaskId};
use crate::status::Status;
use crate::text::Text;
use crate::time::Timestamp;
use crate::value::Value;

/// How far a task has come, by its own account.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Units done.
    pub done: f64,
    /// Units in all, where known.
    pub total: Option<f64>,
    /// Name of the unit, such as `rows`.
    pub unit: Option<Text>,
    /// What it is doing.
    pub message: Option<Text>,
}

/// A task at one moment. Status and version are readable only: `machine::apply` writes them.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSnapshot {
    /// Its id.
    pub id: TaskId,
    /// Name of its definition.
    pub name: Text,
    /// A person's name for it.
    pub label: Option<Text>,
    pub(crate) status: Status,
    pub(crate) status_version: u64,
    /// 0 until the first dispatch, then the number of the latest attempt.
    pub attempt: u32,
    /// All attempts it may have.
    pub max_attempts: u32,
    /// Bucket, recorded at submission and never recomputed.
    pub bucket: Option<u32>,
    /// Key that the bucket was made from.
    pub bucket_key: Option<Text>,
    /// Tags, sorted and without repetition.
    pub tags: Arc<[Text]>,
    /// Higher goes first.
    pub priority: i32,
    /// Latest progress. Written by touch only.
    pub progress: Option<Box<Progress>>,
    /// Why the last attempt failed.
    pub failure: Option<Box<Failure>>,
    /// What it returned.
    pub value: Option<Box<Value>>,
    /// Who runs the controller that holds it, such as `host:pid` or a configured name.
    pub owner: Text,
    /// The incarnation that holds it.
    pub supervisor: Option<IncarnationId>,
    /// How long the holder's lease lasts. Read through the node row, never written by a save.
    pub lease_until: Option<Timestamp>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// Latest entry into `queued`.
    pub queued_at: Option<Timestamp>,
    /// First time its body ran.
    pub started_at: Option<Timestamp>,
    /// When the latest attempt was dispatched.
    pub attempt_started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The task's own last sign of life. Written by touch only; never decides whether its holder lives.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Latest change of status.
    pub updated_at: Timestamp,
}

impl TaskSnapshot {
    /// A new task: `pending` at version 0.
    #[must_use]
    pub fn pending(id: TaskId, name: impl Into<Text>, owner: Text, at: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            label: None,
            status: Status::Pending,
            status_version: 0,
            attempt: 0,
            max_attempts: 1,
            bucket: None,
            bucket_key: None,
            tags: Arc::default(),
            priority: 0,
            progress: None,
            failure: None,
            value: None,
            owner,
            supervisor: None,
            lease_until: None,
            created_at: at,
            queued_at: None,
            started_at: None,
            attempt_started_at: None,
            ended_at: None,
            last_heartbeat_at: None,
            updated_at: at,
        }
    }

    /// For stores: a task read back from a row.
    #[must_use]
    pub fn restored(self, status: Status, status_version: u64) -> Self {
        Self { status, status_version, ..self }
    }

    /// Where it is.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Is this a state of the same task, and not of another one that has its id?
    #[must_use]
    pub fn is_same_task(&self, other: &Self) -> bool {
        self.id == other.id && self.created_at == other.created_at
    }

    /// Number of status changes so far.
    #[must_use]
    pub const fn status_version(&self) -> u64 {
        self.status_version
    }
}
