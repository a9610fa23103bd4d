//! Tasks, nodes and commands for the cases, and the calls that they make again and again.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chongming_core::store::{
    CommandKind, Entry, EntryError, NewCommand, Node, Now, TaskFilter, TaskQuery, TaskStore, Touch,
};
use chongming_core::{
    BucketSet, CommandId, Failure, FailureKind, IncarnationId, Progress, Status, TaskId,
    TaskSnapshot, Timestamp, Transition, Trigger, Value, machine,
};

use crate::breach::{Outcome, present, same};

/// This many seconds after the time at which all cases start.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_123_456 + seconds * 1_000_000)
}

/// [`at`], as the time that decides about leases.
pub(crate) fn now(seconds: i64) -> Now {
    Now::At(at(seconds))
}

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A task in `pending`, held by nobody.
pub(crate) fn task(id: &str) -> Outcome<TaskSnapshot> {
    Ok(TaskSnapshot::pending(TaskId::new(id)?, "sync", "owner-1".into(), at(0)))
}

/// A task in this state, at this version.
pub(crate) fn task_in(id: &str, status: Status, version: u64) -> Outcome<TaskSnapshot> {
    let mut task = task(id)?.restored(status, version);
    task.ended_at = status.is_terminal().then(|| at(0));
    Ok(task)
}

/// A task that this incarnation holds.
pub(crate) fn held(id: &str, status: Status, holder: &str) -> Outcome<TaskSnapshot> {
    let mut task = task_in(id, status, 1)?;
    task.supervisor = Some(incarnation(holder)?);
    Ok(task)
}

/// A task with something in every field that a create writes.
pub(crate) fn full(id: &str) -> Outcome<TaskSnapshot> {
    let mut task = task_in(id, Status::RetryWait, 9)?;
    task.label = Some("a label".into());
    task.attempt = 2;
    task.max_attempts = 5;
    task.bucket = Some(7);
    task.bucket_key = Some("tenant-A".into());
    task.tags = ["gpu".into(), "io".into()].into();
    task.priority = -3;
    task.failure = Some(Box::new(Failure::new(FailureKind::Exception, "it broke")));
    task.value = Some(Box::new(Value::List(vec![Value::Int(1), Value::Null])));
    task.supervisor = Some(incarnation("life-1")?);
    task.queued_at = Some(at(1));
    task.started_at = Some(at(2));
    task.attempt_started_at = Some(at(3));
    task.ended_at = Some(at(4));
    task.updated_at = at(5);
    Ok(task)
}

pub(crate) fn incarnation(id: &str) -> Outcome<IncarnationId> {
    Ok(IncarnationId::new(id)?)
}

pub(crate) fn progress(done: f64) -> Progress {
    Progress { done, total: Some(10.0), unit: Some("rows".into()), message: Some("at work".into()) }
}

/// An audit row; its content follows from its version, so that two of one version differ by `trigger`.
pub(crate) fn step(task: &TaskSnapshot, version: u64, trigger: Trigger) -> Transition {
    Transition {
        task_id: task.id.clone(),
        version,
        from: Status::Pending,
        to: Status::Queued,
        at: at(version.try_into().unwrap_or(0)),
        trigger,
        reason: Some(format!("step {version}").into()),
    }
}

/// Moves a copy of the task as the product would.
pub(crate) fn moved(
    task: &TaskSnapshot,
    to: Status,
    trigger: Trigger,
    time: Timestamp,
) -> Outcome<(TaskSnapshot, Transition)> {
    let mut next = task.clone();
    let row = machine::apply(&mut next, to, trigger, time, None)?;
    Ok((next, row))
}

pub(crate) fn node(incarnation_id: &str, owner: &str, started_at: Timestamp) -> Outcome<Node> {
    Ok(Node {
        owner: owner.into(),
        incarnation: incarnation(incarnation_id)?,
        host: "host-1".into(),
        pid: 4242,
        num_buckets: NonZeroU32::MIN.saturating_add(63),
        owned_buckets: Some(BucketSet::from_iter([1, 2, 3, 9])),
        artifacts: Some("/var/artifacts".into()),
        started_at,
    })
}

pub(crate) fn command(id: &str, task: &str, holder: &str) -> Outcome<NewCommand> {
    Ok(NewCommand {
        id: CommandId::new(id)?,
        task_id: TaskId::new(task)?,
        holder: incarnation(holder)?,
        kind: CommandKind::Stop,
        reason: Some("no longer needed".into()),
        issuer: "alice@desk".into(),
        issued_at: at(1),
    })
}

pub(crate) fn create(snapshot: &TaskSnapshot, transitions: &[Transition]) -> Entry {
    Entry::Create { snapshot: snapshot.clone().into(), transitions: transitions.to_vec() }
}

pub(crate) fn save(snapshot: &TaskSnapshot, expect_version: u64) -> Entry {
    let (snapshot, transitions) = (snapshot.clone().into(), Vec::new());
    Entry::Save { snapshot, expect_version, transitions, if_expired: None }
}

pub(crate) fn save_with(
    snapshot: &TaskSnapshot,
    expect_version: u64,
    transitions: &[Transition],
) -> Entry {
    let (snapshot, transitions) = (snapshot.clone().into(), transitions.to_vec());
    Entry::Save { snapshot, expect_version, transitions, if_expired: None }
}

/// A save that goes through only if the stored holder's lease has expired.
pub(crate) fn save_if_expired(snapshot: &TaskSnapshot, expect_version: u64, now: Now) -> Entry {
    let (snapshot, transitions) = (snapshot.clone().into(), Vec::new());
    Entry::Save { snapshot, expect_version, transitions, if_expired: Some(now) }
}

pub(crate) fn touch(
    task: &TaskSnapshot,
    progress: Option<Progress>,
    heartbeat_at: Option<Timestamp>,
) -> Entry {
    Entry::Touch(Touch { task_id: task.id.clone(), progress: progress.map(Box::new), heartbeat_at })
}

/// Writes entries that must all be accepted.
pub(crate) fn accepted(store: &dyn TaskStore, entries: &[Entry]) -> Outcome {
    let expected = vec![Ok(()); entries.len()];
    same("a batch that must be accepted", store.write(entries)?, expected)
}

/// Writes one entry that must be refused for this reason.
pub(crate) fn refused(store: &dyn TaskStore, entry: Entry, why: EntryError) -> Outcome {
    same("an entry that must be refused", store.write(&[entry])?, vec![Err(why)])
}

/// The task as it is stored.
pub(crate) fn stored(store: &dyn TaskStore, task: &TaskSnapshot) -> Outcome<TaskSnapshot> {
    present("the stored task", store.get(&task.id)?)
}

/// Versions of the trail.
pub(crate) fn versions(store: &dyn TaskStore, task: &TaskSnapshot) -> Outcome<Vec<u64>> {
    Ok(store.history(&task.id, 0, usize::MAX)?.iter().map(|row| row.version).collect())
}

/// Ids of all tasks that match, in the order of pages of two.
pub(crate) fn ids(store: &dyn TaskStore, filter: TaskFilter) -> Outcome<Vec<String>> {
    let mut query = TaskQuery { filter, after: None, limit: 2 };
    let mut ids = Vec::new();
    loop {
        let page = store.query(&query)?;
        same("tasks on a page of at most 2", page.tasks.len().min(2), page.tasks.len())?;
        ids.extend(page.tasks.iter().map(|task| task.id.to_string()));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(ids),
        }
    }
}

/// Do exactly these match, newest first?
pub(crate) fn finds(store: &dyn TaskStore, filter: TaskFilter, expected: &[&str]) -> Outcome {
    let what = format!("tasks found by {filter:?}");
    let expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
    same(&what, ids(store, filter)?, expected)
}

/// Connections for so many threads.
pub(crate) fn connections(data: &dyn crate::Data, count: usize) -> Vec<Arc<dyn TaskStore>> {
    (0..count).map(|_| data.connect()).collect()
}
