//! Batches: one transaction, one result for each entry.

use chongming_core::store::{EntryError, StoreErrorKind};
use chongming_core::{Progress, Status, Trigger, Value};

use crate::breach::{Outcome, fails, results, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    accepted, at, create, progress, save, save_with, step, stored, task, task_in, touch, versions,
};

pub(crate) fn one_result_each(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (a, b) = (task_in("a", Status::Running, 3)?, task("b")?);
    let next = a.clone().restored(Status::Succeeded, 4);
    let seen = store.write(&[
        touch(&b, None, Some(at(1))),
        create(&a, &[]),
        create(&a, &[]),
        save(&next, 2),
        create(&b, &[]),
        save(&next, 3),
        save(&b, 0),
    ])?;
    let expected = [
        Err(EntryError::NotFound),
        Ok(()),
        Err(EntryError::Exists),
        Err(EntryError::Conflict { stored: 3 }),
        Ok(()),
        Ok(()),
        Err(EntryError::NotNewer),
    ];
    results("results in the order of entries", &seen, &expected)?;
    same("the first task", stored(&*store, &a)?, next)?;
    same("the second task", stored(&*store, &b)?, b)
}

pub(crate) fn follows_one_task(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    let mut batch = vec![create(&task, &[])];
    for version in 1..=5 {
        let next = task.clone().restored(Status::Running, version);
        batch.push(save_with(&next, version - 1, &[step(&task, version, Trigger::Adopted)]));
    }
    batch.push(touch(&task, Some(progress(5.0)), None));
    accepted(&*store, &batch)?;
    let seen = stored(&*store, &task)?;
    same("the version", seen.status_version(), 5)?;
    same("progress", seen.progress, Some(Box::new(progress(5.0))))?;
    same("versions of the trail", versions(&*store, &task)?, vec![1, 2, 3, 4, 5])
}

pub(crate) fn refused_entry_leaves_nothing(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    let next = task.clone().restored(Status::Queued, 1);
    let row = |version| [step(&task, version, Trigger::Adopted)];
    let seen = store.write(&[
        create(&task, &row(10)),
        create(&task, &row(11)),
        save_with(&next, 7, &row(12)),
        save_with(&task, 0, &row(13)),
        save_with(&next, 0, &row(14)),
        save_with(&next, 0, &row(15)),
    ])?;
    let expected = [
        Ok(()),
        Err(EntryError::Exists),
        Err(EntryError::Conflict { stored: 0 }),
        Err(EntryError::NotNewer),
        Ok(()),
        Err(EntryError::Conflict { stored: 1 }),
    ];
    results("results in the order of entries", &seen, &expected)?;
    same("the task", stored(&*store, &task)?, next)?;
    same("versions of the trail", versions(&*store, &task)?, vec![10, 14])
}

pub(crate) fn may_be_empty(data: &dyn Data) -> Outcome {
    same("results of an empty batch", data.connect().write(&[])?, vec![])
}

pub(crate) fn may_be_large(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let tasks = (0..3000).map(|i| task(&format!("task-{i}"))).collect::<Outcome<Vec<_>>>()?;
    let batch: Vec<_> =
        tasks.iter().map(|task| create(task, &[step(task, 1, Trigger::Adopted)])).collect();
    accepted(&*store, &batch)?;
    let counts = store.count(&Default::default())?;
    same("tasks in the store", counts.iter().map(|count| count.tasks).sum(), 3000)
}

pub(crate) fn what_json_cannot_say_stops_all(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let good = task("good")?;
    accepted(&*store, &[create(&good, &[])])?;
    let unfit = |value| -> Outcome<_> {
        let mut bad = task("bad")?;
        bad.value = Some(Box::new(value));
        Ok(create(&bad, &[]))
    };
    let bare = |done, total| Progress { done, total, unit: None, message: None };
    let next = good.clone().restored(Status::Queued, 1);
    for bad in [
        unfit(Value::Float(f64::NAN))?,
        unfit(Value::List(vec![Value::Float(f64::INFINITY)]))?,
        unfit((0..=128).fold(Value::Null, |inner, _| Value::List(vec![inner])))?,
        touch(&good, Some(bare(f64::NAN, None)), None),
        touch(&good, Some(bare(1.0, Some(f64::NEG_INFINITY))), None),
    ] {
        let seen = store.write(&[save(&next, 0), bad]);
        fails("a batch with what JSON cannot say", seen, StoreErrorKind::Invalid)?;
        same("the entry before it", stored(&*store, &good)?, good.clone())?;
    }
    Ok(())
}
