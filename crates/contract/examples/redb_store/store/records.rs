//! What stands in the tables: records as JSON, apart from core's own types, so that those may change.

use std::num::NonZeroU32;

use chongming_core::store::{Command, NewCommand, Node, Receipt};
use chongming_core::{
    CommandId, Failure, IncarnationId, Progress, TaskId, TaskSnapshot, Timestamp, Transition, Value,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{Result, unreadable};

pub(super) fn encode(record: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(unreadable)
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// A task without progress, heartbeat and lease, which stand elsewhere.
#[derive(Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub(super) id: String,
    pub(super) name: String,
    label: Option<String>,
    pub(super) status: String,
    pub(super) version: u64,
    attempt: u32,
    max_attempts: u32,
    pub(super) bucket: Option<u32>,
    pub(super) bucket_key: Option<String>,
    tags: Vec<String>,
    priority: i32,
    failure: Option<(String, String, bool)>,
    /// JSON within JSON: read as an `Option`, a result of null would be no result.
    value: Option<String>,
    owner: String,
    pub(super) supervisor: Option<String>,
    pub(super) created_at: i64,
    queued_at: Option<i64>,
    started_at: Option<i64>,
    attempt_started_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
    updated_at: i64,
}

impl TaskRecord {
    pub(super) fn of(task: &TaskSnapshot) -> Result<Self> {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::as_micros);
        let failure = task.failure.as_deref();
        let value = task.value.as_deref().map(serde_json::to_string).transpose();
        Ok(Self {
            id: task.id.to_string(),
            name: task.name.to_string(),
            label: task.label.as_deref().map(str::to_owned),
            status: task.status().to_string(),
            version: task.status_version(),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            bucket: task.bucket,
            bucket_key: task.bucket_key.as_deref().map(str::to_owned),
            tags: task.tags.iter().map(|tag| tag.to_string()).collect(),
            priority: task.priority,
            failure: failure.map(|f| (f.kind.to_string(), f.message.to_string(), f.retryable)),
            value: value.map_err(unreadable)?,
            owner: task.owner.to_string(),
            supervisor: task.supervisor.as_ref().map(IncarnationId::to_string),
            created_at: task.created_at.as_micros(),
            queued_at: micros(task.queued_at),
            started_at: micros(task.started_at),
            attempt_started_at: micros(task.attempt_started_at),
            ended_at: micros(task.ended_at),
            updated_at: task.updated_at.as_micros(),
        })
    }

    // guide: record
    pub(super) fn into_task(self) -> Result<TaskSnapshot> {
        let id = TaskId::new(&self.id).map_err(unreadable)?;
        let mut task =
            TaskSnapshot::pending(id, self.name, self.owner.into(), time(self.created_at));
        task.label = self.label.map(Into::into);
        task.attempt = self.attempt;
        task.max_attempts = self.max_attempts;
        task.bucket = self.bucket;
        task.bucket_key = self.bucket_key.map(Into::into);
        task.tags = self.tags.into_iter().map(Into::into).collect();
        task.priority = self.priority;
        if let Some((kind, message, retryable)) = self.failure {
            let kind = kind.parse().map_err(unreadable)?;
            task.failure = Some(Box::new(Failure { kind, message: message.into(), retryable }));
        }
        task.value = self.value.as_deref().map(value).transpose()?.map(Box::new);
        task.supervisor =
            self.supervisor.map(IncarnationId::new).transpose().map_err(unreadable)?;
        task.queued_at = self.queued_at.map(time);
        task.started_at = self.started_at.map(time);
        task.attempt_started_at = self.attempt_started_at.map(time);
        task.ended_at = self.ended_at.map(time);
        task.updated_at = time(self.updated_at);
        Ok(task.restored(self.status.parse().map_err(unreadable)?, self.version))
    }
    // guide: end
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A value may be nested as deep as core allows, which is deeper than the parser does by itself.
fn value(json: &str) -> Result<Value> {
    let mut parser = serde_json::Deserializer::from_str(json);
    parser.disable_recursion_limit();
    Value::deserialize(&mut parser).map_err(unreadable)
}

/// Done, total, unit and message.
type ProgressRecord = (f64, Option<f64>, Option<String>, Option<String>);

/// Progress and heartbeat.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct TouchRecord {
    progress: Option<ProgressRecord>,
    heartbeat_at: Option<i64>,
}

impl TouchRecord {
    pub(super) fn take(&mut self, progress: Option<&Progress>, heartbeat_at: Option<Timestamp>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        if let Some(p) = progress {
            let (unit, message) = (owned(p.unit.as_deref()), owned(p.message.as_deref()));
            self.progress = Some((p.done, p.total, unit, message));
        }
        if let Some(time) = heartbeat_at {
            self.heartbeat_at = Some(time.as_micros());
        }
    }

    pub(super) fn give(self, task: &mut TaskSnapshot) {
        task.progress = self.progress.map(|(done, total, unit, message)| {
            let (unit, message) = (unit.map(Into::into), message.map(Into::into));
            Box::new(Progress { done, total, unit, message })
        });
        task.last_heartbeat_at = self.heartbeat_at.map(time);
    }
}

/// An audit row; its task and its version are its key.
#[derive(Serialize, Deserialize)]
pub(super) struct TransitionRecord {
    from: String,
    to: String,
    at: i64,
    trigger: String,
    reason: Option<String>,
}

impl TransitionRecord {
    pub(super) fn of(row: &Transition) -> Self {
        Self {
            from: row.from.to_string(),
            to: row.to.to_string(),
            at: row.at.as_micros(),
            trigger: row.trigger.to_string(),
            reason: row.reason.as_deref().map(str::to_owned),
        }
    }

    pub(super) fn into_transition(self, task_id: &TaskId, version: u64) -> Result<Transition> {
        Ok(Transition {
            task_id: task_id.clone(),
            version,
            from: self.from.parse().map_err(unreadable)?,
            to: self.to.parse().map_err(unreadable)?,
            at: time(self.at),
            trigger: self.trigger.parse().map_err(unreadable)?,
            reason: self.reason.map(Into::into),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct CommandRecord {
    pub(super) id: String,
    pub(super) task_id: String,
    pub(super) holder: String,
    kind: String,
    reason: Option<String>,
    issuer: String,
    issued_at: i64,
    pub(super) claimed_until: Option<i64>,
    pub(super) receipt: Option<(String, String)>,
    pub(super) completed_at: Option<i64>,
}

impl CommandRecord {
    pub(super) fn of(new: &NewCommand) -> Self {
        Self {
            id: new.id.to_string(),
            task_id: new.task_id.to_string(),
            holder: new.holder.to_string(),
            kind: new.kind.to_string(),
            reason: new.reason.as_deref().map(str::to_owned),
            issuer: new.issuer.to_string(),
            issued_at: new.issued_at.as_micros(),
            claimed_until: None,
            receipt: None,
            completed_at: None,
        }
    }

    pub(super) fn into_command(self) -> Result<Command> {
        let request = NewCommand {
            id: CommandId::new(self.id).map_err(unreadable)?,
            task_id: TaskId::new(self.task_id).map_err(unreadable)?,
            holder: IncarnationId::new(self.holder).map_err(unreadable)?,
            kind: self.kind.parse().map_err(unreadable)?,
            reason: self.reason.map(Into::into),
            issuer: self.issuer.into(),
            issued_at: time(self.issued_at),
        };
        let receipt = match self.receipt {
            Some((kind, detail)) => {
                Some(Receipt { kind: kind.parse().map_err(unreadable)?, detail: detail.into() })
            }
            None => None,
        };
        let (claimed_until, completed_at) =
            (self.claimed_until.map(time), self.completed_at.map(time));
        Ok(Command { request, claimed_until, receipt, completed_at })
    }
}

/// A node; its incarnation is its key.
#[derive(Serialize, Deserialize)]
pub(super) struct NodeRecord {
    pub(super) owner: String,
    host: String,
    pid: u32,
    num_buckets: NonZeroU32,
    owned_buckets: Option<Vec<u32>>,
    artifacts: Option<String>,
    pub(super) started_at: i64,
    pub(super) lease_until: i64,
}

impl NodeRecord {
    pub(super) fn of(node: &Node, lease_until: Timestamp) -> Self {
        Self {
            owner: node.owner.to_string(),
            host: node.host.to_string(),
            pid: node.pid,
            num_buckets: node.num_buckets,
            owned_buckets: node.owned_buckets.as_ref().map(|set| set.as_slice().to_vec()),
            artifacts: node.artifacts.as_deref().map(str::to_owned),
            started_at: node.started_at.as_micros(),
            lease_until: lease_until.as_micros(),
        }
    }

    pub(super) fn into_node(self, incarnation: &str) -> Result<Node> {
        Ok(Node {
            owner: self.owner.into(),
            incarnation: IncarnationId::new(incarnation).map_err(unreadable)?,
            host: self.host.into(),
            pid: self.pid,
            num_buckets: self.num_buckets,
            owned_buckets: self.owned_buckets.map(|set| set.into_iter().collect()),
            artifacts: self.artifacts.map(Into::into),
            started_at: time(self.started_at),
        })
    }
}
