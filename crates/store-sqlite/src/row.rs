//! Records of core as they stand in the columns.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::SystemTime;

use chongming_core::store::Now;
use chongming_core::{
    Failure, FailureKind, IncarnationId, Progress, TaskId, TaskSnapshot, Text, Timestamp,
    Transition, Value,
};
use rusqlite::Row;
use rusqlite::types::Type;
use serde::Deserialize;

use crate::codes;

/// What [`Reader::task`] reads, from `tasks t`.
pub(crate) const TASK_COLUMNS: &str = "t.id, t.status, t.status_version, t.bucket, t.name, t.owner, \
    t.supervisor, t.created_at, t.updated_at, t.queued_at, t.started_at, t.attempt_started_at, t.ended_at, \
    t.attempt, t.max_attempts, t.priority, t.label, t.bucket_key, t.tags, t.value, t.failure_kind, \
    t.failure_message, t.failure_retryable, t.last_heartbeat_at, t.progress_done, t.progress_total, \
    t.progress_unit, t.progress_message, t.seq";

/// Where [`TASK_COLUMNS`] has the sequence number.
pub(crate) const SEQ: usize = 28;

/// How many columns [`TASK_COLUMNS`] has.
pub(crate) const TASK_WIDTH: usize = 29;

/// Reads tasks one after the other; they share the texts that they have in common.
#[derive(Default)]
pub(crate) struct Reader {
    name: Text,
    owner: Text,
    supervisor: Option<IncarnationId>,
}

impl Reader {
    /// The task, but for its lease.
    pub(crate) fn task(&mut self, row: &Row<'_>) -> rusqlite::Result<TaskSnapshot> {
        let status = code(row, 1, codes::status_of, "status")?;
        let (name, owner) = (shared(&mut self.name, row, 4)?, shared(&mut self.owner, row, 5)?);
        let mut task = TaskSnapshot::pending(task_id(row, 0)?, name, owner, time(row, 7)?);
        task.bucket = row.get(3)?;
        task.supervisor = self.supervisor(row, 6)?;
        task.updated_at = time(row, 8)?;
        task.queued_at = optional_time(row, 9)?;
        task.started_at = optional_time(row, 10)?;
        task.attempt_started_at = optional_time(row, 11)?;
        task.ended_at = optional_time(row, 12)?;
        task.attempt = row.get(13)?;
        task.max_attempts = row.get(14)?;
        task.priority = row.get(15)?;
        task.label = optional_text(row, 16)?;
        task.bucket_key = optional_text(row, 17)?;
        if let Some(json) = optional_str(row, 18)? {
            task.tags = tags(18, json)?;
        }
        task.value = optional_str(row, 19)?.map(|json| value(19, json)).transpose()?.map(Box::new);
        if let Some(kind) = optional_str(row, 20)? {
            let kind: FailureKind = kind.parse().map_err(|e| unreadable(20, e))?;
            let (message, retryable) = (text(row, 21)?, row.get(22)?);
            task.failure = Some(Box::new(Failure { kind, message, retryable }));
        }
        task.last_heartbeat_at = optional_time(row, 23)?;
        if let Some(done) = row.get(24)? {
            let (unit, message) = (optional_text(row, 26)?, optional_text(row, 27)?);
            task.progress = Some(Box::new(Progress { done, total: row.get(25)?, unit, message }));
        }
        Ok(task.restored(status, unsigned(row, 2)?))
    }

    fn supervisor(
        &mut self,
        row: &Row<'_>,
        column: usize,
    ) -> rusqlite::Result<Option<IncarnationId>> {
        let Some(id) = optional_str(row, column)? else { return Ok(None) };
        if self.supervisor.as_ref().is_none_or(|last| last.as_str() != id) {
            self.supervisor = Some(IncarnationId::new(id).map_err(|e| unreadable(column, e))?);
        }
        Ok(self.supervisor.clone())
    }
}

/// The column's text, without a copy where it is the same as the row before.
fn shared(last: &mut Text, row: &Row<'_>, column: usize) -> rusqlite::Result<Text> {
    let text = row.get_ref(column)?.as_str()?;
    if **last != *text {
        *last = text.into();
    }
    Ok(Text::clone(last))
}

/// From `version, from_status, to_status, at, trigger, reason`.
pub(crate) fn transition(row: &Row<'_>, task_id: &TaskId) -> rusqlite::Result<Transition> {
    Ok(Transition {
        task_id: task_id.clone(),
        version: unsigned(row, 0)?,
        from: code(row, 1, codes::status_of, "status")?,
        to: code(row, 2, codes::status_of, "status")?,
        at: time(row, 3)?,
        trigger: code(row, 4, codes::trigger_of, "trigger")?,
        reason: optional_text(row, 5)?,
    })
}

fn code<T>(
    row: &Row<'_>,
    column: usize,
    known: fn(i64) -> Option<T>,
    what: &str,
) -> rusqlite::Result<T> {
    let code = row.get(column)?;
    known(code).ok_or_else(|| unreadable(column, format!("{code} is no {what} of this version")))
}

pub(crate) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

/// Versions and counts are `u64` in core; SQLite's integers are `i64`.
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Text> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

fn optional_str<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a str>> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Text>> {
    Ok(optional_str(row, column)?.map(Text::from))
}

pub(crate) fn task_id(row: &Row<'_>, column: usize) -> rusqlite::Result<TaskId> {
    TaskId::new(row.get_ref(column)?.as_str()?).map_err(|e| unreadable(column, e))
}

pub(crate) fn incarnation(row: &Row<'_>, column: usize) -> rusqlite::Result<IncarnationId> {
    IncarnationId::new(row.get_ref(column)?.as_str()?).map_err(|e| unreadable(column, e))
}

pub(crate) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

pub(crate) fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

fn tags(column: usize, json: &str) -> rusqlite::Result<Arc<[Text]>> {
    let tags: Vec<Cow<'_, str>> = serde_json::from_str(json).map_err(|e| unreadable(column, e))?;
    Ok(tags.iter().map(|tag| Text::from(&**tag)).collect())
}

/// JSON of a value. [`Value`] limits the depth itself, to what it may have been stored with.
fn value(column: usize, json: &str) -> rusqlite::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|e| unreadable(column, e))
}

/// A task's columns that need a form of their own.
pub(crate) struct Encoded {
    pub(crate) version: i64,
    pub(crate) tags: Option<String>,
    pub(crate) value: Option<Cow<'static, str>>,
}

pub(crate) fn encode(task: &TaskSnapshot) -> rusqlite::Result<Encoded> {
    let json = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
    let tags = match &*task.tags {
        [] => None,
        tags => {
            let tags: Vec<&str> = tags.iter().map(|tag| &**tag).collect();
            Some(serde_json::to_string(&tags).map_err(json)?)
        }
    };
    let value = match task.value.as_deref() {
        None => None,
        Some(Value::Null) => Some(Cow::Borrowed("null")),
        Some(value) => Some(Cow::Owned(serde_json::to_string(value).map_err(json)?)),
    };
    Ok(Encoded { version: integer(task.status_version())?, tags, value })
}

/// The inverse of [`unsigned`].
pub(crate) fn integer(number: u64) -> rusqlite::Result<i64> {
    i64::try_from(number).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
}

/// A limit as SQL takes it: what is too large for it limits nothing.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The time that decides; where it is the store's, read in the transaction, after its lock was taken.
pub(crate) fn resolve(now: Now) -> Timestamp {
    match now {
        Now::Store => SystemTime::now().into(),
        Now::At(time) => time,
    }
}
