//! Save: compare and set.

use chongming_core::store::EntryError;
use chongming_core::{Failure, FailureKind, Status, Trigger, Value};

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, create, full, incarnation, moved, node, now, progress, refused, save,
    save_if_expired, save_with, step, stored, task, task_in, touch, versions,
};

pub(crate) fn moves_the_task(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[])])?;
    let (next, row) = moved(&task, Status::Queued, Trigger::DependenciesResolved, at(7))?;
    accepted(&*store, &[save_with(&next, 0, std::slice::from_ref(&row))])?;
    same("the task", stored(&*store, &task)?, next)?;
    same("its trail", store.history(&task.id, 0, 10)?, vec![row])
}

pub(crate) fn writes_every_field(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = full("a")?;
    accepted(&*store, &[create(&first, &[])])?;
    let mut next = first.clone().restored(Status::Failed, 10);
    next.label = Some("another".into());
    (next.attempt, next.max_attempts, next.priority) = (3, 6, 8);
    next.tags = ["net".into()].into();
    next.failure = Some(Box::new(Failure::new(FailureKind::Panic, "worse").permanent()));
    next.value = Some(Box::new(Value::Bool(true)));
    next.owner = "owner-2".into();
    next.supervisor = Some(incarnation("life-2")?);
    next.queued_at = Some(at(11));
    next.started_at = Some(at(12));
    next.attempt_started_at = Some(at(13));
    next.ended_at = Some(at(14));
    next.updated_at = at(15);
    accepted(&*store, &[save(&next, 9)])?;
    same("every field changed", stored(&*store, &next)?, next)
}

pub(crate) fn clears_fields(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = full("a")?;
    accepted(&*store, &[create(&first, &[])])?;
    let mut next = first.clone().restored(Status::Queued, 10);
    (next.label, next.failure, next.value, next.supervisor) = (None, None, None, None);
    (next.queued_at, next.started_at, next.attempt_started_at, next.ended_at) =
        (None, None, None, None);
    next.tags = [].into();
    accepted(&*store, &[save(&next, 9)])?;
    same("optional fields cleared", stored(&*store, &next)?, next)
}

pub(crate) fn leaves_what_submission_fixed(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = full("a")?;
    accepted(&*store, &[create(&first, &[])])?;
    let expected = first.clone().restored(Status::Queued, 10);
    let mut next = expected.clone();
    next.name = "other".into();
    next.bucket = Some(8);
    next.bucket_key = Some("tenant-Z".into());
    next.created_at = at(99);
    accepted(&*store, &[save(&next, 9)])?;
    same("name, bucket, bucket key and created_at", stored(&*store, &first)?, expected)
}

pub(crate) fn leaves_side_channel(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[]), touch(&task, Some(progress(4.0)), Some(at(4)))])?;
    let plain = task.clone().restored(Status::Queued, 1);
    let mut stale = task.clone().restored(Status::Starting, 2);
    stale.progress = Some(Box::new(progress(1.0)));
    stale.last_heartbeat_at = Some(at(1));
    for (next, expect_version) in [(plain, 0), (stale, 1)] {
        accepted(&*store, &[save(&next, expect_version)])?;
        let seen = stored(&*store, &task)?;
        same("progress after a save", seen.progress, Some(Box::new(progress(4.0))))?;
        same("heartbeat after a save", seen.last_heartbeat_at, Some(at(4)))?;
    }
    Ok(())
}

pub(crate) fn leaves_the_lease(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let mut task = task("a")?;
    task.supervisor = Some(incarnation("life-1")?);
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    accepted(&*store, &[create(&task, &[])])?;
    let mut next = task.clone().restored(Status::Queued, 1);
    next.lease_until = Some(at(100_000));
    accepted(&*store, &[save(&next, 0)])?;
    same("the lease after a save", stored(&*store, &task)?.lease_until, Some(at(60)))
}

pub(crate) fn other_version_is_a_conflict(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = task_in("a", Status::Running, 5)?;
    accepted(&*store, &[create(&first, &[step(&first, 5, Trigger::Launched)])])?;
    for expected in [4, 6, 0, u64::MAX - 1] {
        let next = first.clone().restored(Status::Succeeded, u64::MAX);
        let rows = [step(&first, 6, Trigger::Completed)];
        let entry = save_with(&next, expected, &rows);
        refused(&*store, entry, EntryError::Conflict { stored: 5 })?;
    }
    same("the task after refused saves", stored(&*store, &first)?, first.clone())?;
    same("its trail", versions(&*store, &first)?, vec![5])
}

pub(crate) fn any_larger_version_will_do(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[])])?;
    let mut expected = 0;
    for version in [1, 2, 40, i64::MAX as u64] {
        let next = task.clone().restored(Status::Running, version);
        accepted(&*store, &[save(&next, expected)])?;
        same("the version", stored(&*store, &task)?.status_version(), version)?;
        expected = version;
    }
    Ok(())
}

pub(crate) fn version_must_grow(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = task_in("a", Status::Running, 5)?;
    accepted(&*store, &[create(&first, &[])])?;
    for version in [5, 4, 0] {
        let next = first.clone().restored(Status::Succeeded, version);
        refused(&*store, save(&next, 5), EntryError::NotNewer)?;
    }
    same("the task after refused saves", stored(&*store, &first)?, first)
}

pub(crate) fn unknown_is_not_found(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let unknown = task_in("unknown", Status::Queued, 1)?;
    refused(&*store, save(&unknown, 0), EntryError::NotFound)?;
    same("a task that was only saved", store.get(&unknown.id)?, None)
}

pub(crate) fn first_reason_is_told(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let mut task = task_in("a", Status::Running, 5)?;
    task.supervisor = Some(incarnation("life-1")?);
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    accepted(&*store, &[create(&task, &[])])?;
    let guarded = |version, expected| {
        save_if_expired(&task.clone().restored(Status::Lost, version), expected, now(1))
    };
    refused(&*store, guarded(3, 4), EntryError::Conflict { stored: 5 })?;
    refused(&*store, guarded(5, 5), EntryError::NotNewer)?;
    refused(&*store, guarded(6, 5), EntryError::LeaseHeld { until: at(60) })
}
