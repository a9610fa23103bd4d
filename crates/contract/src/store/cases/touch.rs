//! Touch: the high-frequency side channel.

use chongming_core::store::EntryError;
use chongming_core::{Progress, Status};

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    accepted, at, create, full, progress, refused, save, stored, task, touch,
};

pub(crate) fn changes_nothing_else(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = full("a")?;
    accepted(&*store, &[create(&task, &[])])?;
    accepted(&*store, &[touch(&task, Some(progress(4.0)), Some(at(90)))])?;
    let mut expected = task.clone();
    expected.progress = Some(Box::new(progress(4.0)));
    expected.last_heartbeat_at = Some(at(90));
    same("the task after a touch", stored(&*store, &task)?, expected)?;
    same("its trail", store.history(&task.id, 0, 10)?, vec![])
}

pub(crate) fn leaves_what_it_does_not_name(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[]), touch(&task, Some(progress(4.0)), Some(at(4)))])?;
    for entry in [
        touch(&task, None, Some(at(5))),
        touch(&task, Some(progress(6.0)), None),
        touch(&task, None, None),
    ] {
        accepted(&*store, &[entry])?;
    }
    let seen = stored(&*store, &task)?;
    same("progress", seen.progress, Some(Box::new(progress(6.0))))?;
    same("heartbeat", seen.last_heartbeat_at, Some(at(5)))
}

pub(crate) fn replaces_progress_whole(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[]), touch(&task, Some(progress(4.0)), None)])?;
    let bare = Progress { done: 0.0, total: None, unit: None, message: None };
    accepted(&*store, &[touch(&task, Some(bare.clone()), None)])?;
    same("progress", stored(&*store, &task)?.progress, Some(Box::new(bare)))
}

pub(crate) fn needs_no_version(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    accepted(&*store, &[create(&task, &[])])?;
    let next = task.clone().restored(Status::Running, 3);
    accepted(
        &*store,
        &[touch(&task, Some(progress(1.0)), None), save(&next, 0), touch(&task, None, Some(at(2)))],
    )?;
    let mut expected = next.clone();
    expected.progress = Some(Box::new(progress(1.0)));
    expected.last_heartbeat_at = Some(at(2));
    same("the task after touch, save, touch", stored(&*store, &task)?, expected)
}

pub(crate) fn unknown_is_not_found(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let unknown = task("unknown")?;
    refused(&*store, touch(&unknown, None, Some(at(1))), EntryError::NotFound)?;
    same("a task that was only touched", store.get(&unknown.id)?, None)
}
