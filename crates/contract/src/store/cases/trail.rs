//! The audit trail.

use chongming_core::store::EntryError;
use chongming_core::{Status, Trigger};

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;
use crate::store::sample::{accepted, create, refused, save_with, step, task, task_in, versions};

pub(crate) fn repeated_row_is_skipped(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    let (first, second) = (step(&task, 1, Trigger::Adopted), step(&task, 2, Trigger::Adopted));
    accepted(&*store, &[create(&task, std::slice::from_ref(&first))])?;
    let again = step(&task, 1, Trigger::Dispatch);
    let next = task.clone().restored(Status::Running, 2);
    accepted(&*store, &[save_with(&next, 0, &[again, second.clone(), second.clone()])])?;
    same("the trail", store.history(&task.id, 0, 10)?, vec![first, second])
}

pub(crate) fn ascends_whatever_came_first(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[step(&task, 4, Trigger::Adopted)])])?;
    let next = task.clone().restored(Status::Running, 300);
    let rows = [300, 2, 70].map(|version| step(&task, version, Trigger::Dispatch));
    accepted(&*store, &[save_with(&next, 0, &rows)])?;
    same("versions of the trail", versions(&*store, &task)?, vec![2, 4, 70, 300])
}

pub(crate) fn refused_save_leaves_no_row(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task_in("a", Status::Running, 3)?;
    accepted(&*store, &[create(&task, &[])])?;
    let row = [step(&task, 4, Trigger::Completed)];
    let late = task.clone().restored(Status::Succeeded, 4);
    refused(&*store, save_with(&late, 2, &row), EntryError::Conflict { stored: 3 })?;
    let same_version = task.clone().restored(Status::Succeeded, 3);
    refused(&*store, save_with(&same_version, 3, &row), EntryError::NotNewer)?;
    same("versions of the trail", versions(&*store, &task)?, vec![])
}

pub(crate) fn is_read_in_parts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    let rows: Vec<_> = (1..=9).map(|version| step(&task, version, Trigger::Adopted)).collect();
    accepted(&*store, &[create(&task, &rows)])?;
    for (after, limit, expected) in [
        (0, 2, vec![1, 2]),
        (2, 3, vec![3, 4, 5]),
        (8, 100, vec![9]),
        (9, 100, vec![]),
        (u64::MAX, 100, vec![]),
        (0, 0, vec![]),
        (0, usize::MAX, (1..=9).collect()),
    ] {
        let seen = store.history(&task.id, after, limit)?;
        let seen: Vec<u64> = seen.iter().map(|row| row.version).collect();
        same(&format!("at most {limit} rows after version {after}"), seen, expected)?;
    }
    Ok(())
}

pub(crate) fn belongs_to_one_task(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let tasks = [task("a")?, task("b")?, task("ab")?];
    for (count, task) in (1..).zip(&tasks) {
        let rows: Vec<_> = (1..=count).map(|v| step(task, v, Trigger::Adopted)).collect();
        accepted(&*store, &[create(task, &rows)])?;
    }
    for (count, task) in (1..).zip(&tasks) {
        let seen = store.history(&task.id, 0, 10)?;
        let expected: Vec<_> = (1..=count).map(|v| step(task, v, Trigger::Adopted)).collect();
        same(&format!("the trail of {}", task.id), seen, expected)?;
    }
    Ok(())
}
