//! Batches by column, as the one statement that writes them takes them.

use std::borrow::Cow;

use chongming_core::store::Touch;
use chongming_core::{TaskSnapshot, Transition, Value};
use postgres::types::ToSql;

use crate::codes;
use crate::connection::{Link, Parameters};
use crate::error::Result;
use crate::row::{Time, get, integer, json};
use crate::statement::{FIXED, STATE, Shape, TOUCH, TRAIL, Trust};

/// Rows of [`STATE`], by column.
#[derive(Default)]
struct State<'a> {
    id: Vec<&'a str>,
    status: Vec<i16>,
    version: Vec<i64>,
    owner: Vec<&'a str>,
    supervisor: Vec<Option<&'a str>>,
    updated_at: Vec<Time>,
    queued_at: Vec<Option<Time>>,
    started_at: Vec<Option<Time>>,
    attempt_started_at: Vec<Option<Time>>,
    ended_at: Vec<Option<Time>>,
    attempt: Vec<i64>,
    max_attempts: Vec<i64>,
    priority: Vec<i32>,
    label: Vec<Option<&'a str>>,
    tags: Vec<Option<String>>,
    value: Vec<Option<Cow<'static, str>>>,
    failure_kind: Vec<Option<&'a str>>,
    failure_message: Vec<Option<&'a str>>,
    failure_retryable: Vec<Option<bool>>,
}

impl<'a> State<'a> {
    fn push(&mut self, task: &'a TaskSnapshot, version: i64) -> Result<()> {
        self.version.push(version);
        self.tags.push(if task.tags.is_empty() {
            None
        } else {
            let tags: Vec<&str> = task.tags.iter().map(|tag| &**tag).collect();
            Some(json(&tags)?)
        });
        self.value.push(match task.value.as_deref() {
            None => None,
            Some(Value::Null) => Some(Cow::Borrowed("null")),
            Some(value) => Some(Cow::Owned(json(value)?)),
        });
        let failure = task.failure.as_deref();
        self.id.push(task.id.as_str());
        self.status.push(codes::status(task.status()));
        self.owner.push(&task.owner);
        self.supervisor.push(task.supervisor.as_ref().map(|id| id.as_str()));
        self.updated_at.push(Time(task.updated_at));
        self.queued_at.push(task.queued_at.map(Time));
        self.started_at.push(task.started_at.map(Time));
        self.attempt_started_at.push(task.attempt_started_at.map(Time));
        self.ended_at.push(task.ended_at.map(Time));
        self.attempt.push(i64::from(task.attempt));
        self.max_attempts.push(i64::from(task.max_attempts));
        self.priority.push(task.priority);
        self.label.push(task.label.as_deref());
        self.failure_kind.push(failure.map(|f| f.kind.as_str()));
        self.failure_message.push(failure.map(|f| &*f.message));
        self.failure_retryable.push(failure.map(|f| f.retryable));
        Ok(())
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); STATE.len()] {
        [
            &self.id,
            &self.status,
            &self.version,
            &self.owner,
            &self.supervisor,
            &self.updated_at,
            &self.queued_at,
            &self.started_at,
            &self.attempt_started_at,
            &self.ended_at,
            &self.attempt,
            &self.max_attempts,
            &self.priority,
            &self.label,
            &self.tags,
            &self.value,
            &self.failure_kind,
            &self.failure_message,
            &self.failure_retryable,
        ]
    }
}

/// Rows of [`TRAIL`], by column, each with the place of its task in the batch.
#[derive(Default)]
struct Trail<'a> {
    place: Vec<i64>,
    version: Vec<i64>,
    from: Vec<i16>,
    to: Vec<i16>,
    at: Vec<Time>,
    trigger: Vec<i16>,
    reason: Vec<Option<&'a str>>,
}

impl<'a> Trail<'a> {
    fn push(&mut self, place: usize, rows: &'a [Transition]) -> Result<()> {
        for row in rows {
            self.place.push(integer(place as u64)?);
            self.version.push(integer(row.version)?);
            self.from.push(codes::status(row.from));
            self.to.push(codes::status(row.to));
            self.at.push(Time(row.at));
            self.trigger.push(codes::trigger(row.trigger));
            self.reason.push(row.reason.as_deref());
        }
        Ok(())
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); TRAIL.len() + 1] {
        [&self.place, &self.version, &self.from, &self.to, &self.at, &self.trigger, &self.reason]
    }
}

/// Entries of one kind each, none of them of the same task as another.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    creates: Creates<'a>,
    saves: Saves<'a>,
    touches: Touches<'a>,
}

/// New tasks.
#[derive(Default)]
struct Creates<'a> {
    state: State<'a>,
    name: Vec<&'a str>,
    bucket: Vec<Option<i64>>,
    bucket_key: Vec<Option<&'a str>>,
    created_at: Vec<Time>,
    trail: Trail<'a>,
}

/// New versions.
#[derive(Default)]
struct Saves<'a> {
    state: State<'a>,
    expected: Vec<i64>,
    trail: Trail<'a>,
}

/// Progress and heartbeats.
#[derive(Default)]
struct Touches<'a> {
    id: Vec<&'a str>,
    heartbeat: Vec<Option<Time>>,
    has_progress: Vec<bool>,
    done: Vec<Option<f64>>,
    total: Vec<Option<f64>>,
    unit: Vec<Option<&'a str>>,
    message: Vec<Option<&'a str>>,
}

/// What was refused, by kind: places among the entries of that kind, from 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) creates: Vec<usize>,
    pub(crate) saves: Vec<usize>,
    pub(crate) touches: Vec<usize>,
}

impl<'a> Batch<'a> {
    pub(crate) fn create(&mut self, task: &'a TaskSnapshot, trail: &'a [Transition]) -> Result<()> {
        let Creates { state, name, bucket, bucket_key, created_at, trail: rows } =
            &mut self.creates;
        state.push(task, integer(task.status_version())?)?;
        name.push(&task.name);
        bucket.push(task.bucket.map(i64::from));
        bucket_key.push(task.bucket_key.as_deref());
        created_at.push(Time(task.created_at));
        rows.push(state.id.len(), trail)
    }

    pub(crate) fn save(
        &mut self,
        task: &'a TaskSnapshot,
        expected: u64,
        trail: &'a [Transition],
    ) -> Result<()> {
        // A version that no column can hold is none that is stored, and none that will be.
        let (version, expected) =
            match (i64::try_from(task.status_version()), i64::try_from(expected)) {
                (Ok(version), Ok(expected)) => (version, expected),
                (Err(_), _) | (_, Err(_)) => (i64::MAX, -1),
            };
        self.saves.state.push(task, version)?;
        self.saves.expected.push(expected);
        self.saves.trail.push(self.saves.expected.len(), trail)
    }

    pub(crate) fn touch(&mut self, touch: &'a Touch) {
        let progress = touch.progress.as_deref();
        let touches = &mut self.touches;
        touches.id.push(touch.task_id.as_str());
        touches.heartbeat.push(touch.heartbeat_at.map(Time));
        touches.has_progress.push(progress.is_some());
        touches.done.push(progress.map(|p| p.done));
        touches.total.push(progress.and_then(|p| p.total));
        touches.unit.push(progress.and_then(|p| p.unit.as_deref()));
        touches.message.push(progress.and_then(|p| p.message.as_deref()));
    }

    fn shape(&self, trust: Trust) -> Shape {
        Shape {
            trust,
            creates: !self.creates.state.id.is_empty(),
            saves: !self.saves.expected.is_empty(),
            touches: !self.touches.id.is_empty(),
        }
    }

    /// Writes what can be written.
    pub(crate) fn execute(&self, link: &mut Link, trust: Trust) -> Result<Missed> {
        let shape = self.shape(trust);
        let mut parameters: Vec<&(dyn ToSql + Sync)> = Vec::new();
        if shape.creates {
            let Creates { state, name, bucket, bucket_key, created_at, trail } = &self.creates;
            parameters.extend(state.parameters());
            let fixed: [&(dyn ToSql + Sync); FIXED.len()] = [name, bucket, bucket_key, created_at];
            parameters.extend(fixed);
            parameters.extend(trail.parameters());
        }
        if shape.saves {
            parameters.extend(self.saves.state.parameters());
            parameters.push(&self.saves.expected);
            parameters.extend(self.saves.trail.parameters());
        }
        if shape.touches {
            let Touches { id, heartbeat, has_progress, done, total, unit, message } = &self.touches;
            let columns: [&(dyn ToSql + Sync); TOUCH.len()] =
                [id, heartbeat, has_progress, done, total, unit, message];
            parameters.extend(columns);
        }
        if parameters.is_empty() {
            return Ok(Missed::default());
        }
        run(shape, link, &parameters)
    }
}

/// Runs the statement, and reads the places of what was refused.
fn run(shape: Shape, link: &mut Link, parameters: &Parameters<'_>) -> Result<Missed> {
    let row = link.write(shape, parameters)?;
    let mut answers = 0..;
    let mut places = |is_there: bool| -> Result<Vec<usize>> {
        let Some(column) = is_there.then(|| answers.next()).flatten() else {
            return Ok(Vec::new());
        };
        let places: Option<Vec<i64>> = get(&row, column)?;
        let places = places.unwrap_or_default().into_iter();
        Ok(places.filter_map(|place| usize::try_from(place - 1).ok()).collect())
    };
    Ok(Missed {
        creates: places(shape.creates)?,
        saves: places(shape.saves)?,
        touches: places(shape.touches)?,
    })
}
