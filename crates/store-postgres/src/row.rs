//! Records of core as they stand in the columns.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chongming_core::store::Now;
use chongming_core::{
    Failure, FailureKind, IncarnationId, Progress, TaskId, TaskSnapshot, Text, Timestamp,
    Transition, Value,
};
use postgres::Row;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use serde::Deserialize;

use crate::codes;
use crate::error::{Fault, Result};

/// What [`Reader::task`] reads, from `tasks t`.
pub(crate) const TASK_COLUMNS: &str = "t.id, t.status, t.status_version, t.bucket, t.name, t.owner, \
    t.supervisor, t.created_at, t.updated_at, t.queued_at, t.started_at, t.attempt_started_at, t.ended_at, \
    t.attempt, t.max_attempts, t.priority, t.label, t.bucket_key, t.tags::text, t.value::text, \
    t.failure_kind, t.failure_message, t.failure_retryable, t.last_heartbeat_at, t.progress_done, \
    t.progress_total, t.progress_unit, t.progress_message, t.seq";

/// Where [`TASK_COLUMNS`] has the sequence number.
pub(crate) const SEQ: usize = 28;

/// How many columns [`TASK_COLUMNS`] has.
pub(crate) const TASK_WIDTH: usize = 29;

/// A time as `TIMESTAMPTZ` has it: microseconds, too, but since the year 2000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) Timestamp);

const EPOCH: i64 = 946_684_800_000_000;

/// The earliest time that the server knows, in 4714 BC.
const EARLIEST: i64 = -211_813_488_000_000_000;

impl ToSql for Time {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        let micros = self.0.as_micros().saturating_sub(EPOCH).max(EARLIEST);
        out.extend_from_slice(&micros.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Time {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(Timestamp::from_micros(micros.saturating_add(EPOCH))))
    }

    accepts!(TIMESTAMPTZ);
}

/// Reads tasks one after the other; they share the texts that they have in common.
#[derive(Default)]
pub(crate) struct Reader {
    name: Text,
    owner: Text,
    supervisor: Option<IncarnationId>,
}

impl Reader {
    /// The task, but for its lease.
    pub(crate) fn task(&mut self, row: &Row) -> Result<TaskSnapshot> {
        let status = code(row, 1, codes::status_of, "status")?;
        let (name, owner) = (shared(&mut self.name, row, 4)?, shared(&mut self.owner, row, 5)?);
        let mut task = TaskSnapshot::pending(task_id(row, 0)?, name, owner, time(row, 7)?);
        task.bucket = optional_unsigned(row, 3)?;
        task.supervisor = self.supervisor(row, 6)?;
        task.updated_at = time(row, 8)?;
        task.queued_at = optional_time(row, 9)?;
        task.started_at = optional_time(row, 10)?;
        task.attempt_started_at = optional_time(row, 11)?;
        task.ended_at = optional_time(row, 12)?;
        task.attempt = unsigned(row, 13)?;
        task.max_attempts = unsigned(row, 14)?;
        task.priority = get(row, 15)?;
        task.label = optional_text(row, 16)?;
        task.bucket_key = optional_text(row, 17)?;
        if let Some(json) = get(row, 18)? {
            task.tags = tags(json)?;
        }
        task.value = get::<Option<&str>>(row, 19)?.map(value).transpose()?.map(Box::new);
        if let Some(kind) = get::<Option<&str>>(row, 20)? {
            let kind: FailureKind = kind.parse().map_err(unreadable)?;
            let (message, retryable) = (text(row, 21)?, get(row, 22)?);
            task.failure = Some(Box::new(Failure { kind, message, retryable }));
        }
        task.last_heartbeat_at = optional_time(row, 23)?;
        if let Some(done) = get(row, 24)? {
            let (unit, message) = (optional_text(row, 26)?, optional_text(row, 27)?);
            task.progress = Some(Box::new(Progress { done, total: get(row, 25)?, unit, message }));
        }
        Ok(task.restored(status, unsigned(row, 2)?))
    }

    fn supervisor(&mut self, row: &Row, column: usize) -> Result<Option<IncarnationId>> {
        let Some(id) = get::<Option<&str>>(row, column)? else { return Ok(None) };
        if self.supervisor.as_ref().is_none_or(|last| last.as_str() != id) {
            self.supervisor = Some(IncarnationId::new(id).map_err(unreadable)?);
        }
        Ok(self.supervisor.clone())
    }
}

/// The column's text, without a copy where it is the same as the row before.
fn shared(last: &mut Text, row: &Row, column: usize) -> Result<Text> {
    let text: &str = get(row, column)?;
    if **last != *text {
        *last = text.into();
    }
    Ok(Text::clone(last))
}

/// From `version, from_status, to_status, at, trigger, reason`.
pub(crate) fn transition(row: &Row, task_id: &TaskId) -> Result<Transition> {
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

/// The word behind a small integer.
pub(crate) fn code<T>(
    row: &Row,
    column: usize,
    known: fn(i16) -> Option<T>,
    what: &str,
) -> Result<T> {
    let code = get(row, column)?;
    known(code).ok_or_else(|| unreadable(format!("{code} is no {what} of this version")))
}

pub(crate) fn unreadable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
    Fault::Unreadable(error.into())
}

/// A column as it is.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(unreadable)
}

/// Counts are unsigned in core; the server's integers are signed.
pub(crate) fn unsigned<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T> {
    narrowed(get(row, column)?)
}

pub(crate) fn optional_unsigned<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<Option<T>> {
    get::<Option<i64>>(row, column)?.map(narrowed).transpose()
}

fn narrowed<T: TryFrom<i64>>(number: i64) -> Result<T> {
    T::try_from(number).map_err(|_| unreadable(format!("the number {number} is out of range")))
}

pub(crate) fn text(row: &Row, column: usize) -> Result<Text> {
    get::<&str>(row, column).map(Text::from)
}

pub(crate) fn optional_text(row: &Row, column: usize) -> Result<Option<Text>> {
    Ok(get::<Option<&str>>(row, column)?.map(Text::from))
}

pub(crate) fn task_id(row: &Row, column: usize) -> Result<TaskId> {
    TaskId::new(get::<&str>(row, column)?).map_err(unreadable)
}

pub(crate) fn incarnation(row: &Row, column: usize) -> Result<IncarnationId> {
    IncarnationId::new(get::<&str>(row, column)?).map_err(unreadable)
}

pub(crate) fn time(row: &Row, column: usize) -> Result<Timestamp> {
    get::<Time>(row, column).map(|time| time.0)
}

pub(crate) fn optional_time(row: &Row, column: usize) -> Result<Option<Timestamp>> {
    Ok(get::<Option<Time>>(row, column)?.map(|time| time.0))
}

fn tags(json: &str) -> Result<Arc<[Text]>> {
    let tags: Vec<Cow<'_, str>> = serde_json::from_str(json).map_err(unreadable)?;
    Ok(tags.iter().map(|tag| Text::from(&**tag)).collect())
}

/// JSON of a value. [`Value`] limits the depth itself, to what it may have been stored with.
fn value(json: &str) -> Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(unreadable)
}

/// JSON of what is to be stored or searched for.
pub(crate) fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Fault::Unfit(error.into()))
}

/// The inverse of [`unsigned`].
pub(crate) fn integer(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|error| Fault::Unfit(error.into()))
}

/// A limit as SQL takes it: what is too large for it limits nothing.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The time that decides; `None` = the server's, which the statement reads where it needs it.
pub(crate) fn given(now: Now) -> Option<Time> {
    match now {
        Now::Store => None,
        Now::At(time) => Some(Time(time)),
    }
}

/// A duration in microseconds, short enough to be added to any time of this age.
pub(crate) fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 365 * 86_400 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(CENTURY, |micros| micros.min(CENTURY))
}
