//! Create.

use chongming_core::Trigger;
use chongming_core::store::EntryError;

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    accepted, at, create, full, progress, refused, step, stored, task, versions,
};

pub(crate) fn reads_back(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (full, plain) = (full("full")?, task("plain")?);
    accepted(&*store, &[create(&full, &[]), create(&plain, &[])])?;
    same("a task with every field", stored(&*store, &full)?, full)?;
    same("a task with as few fields as possible", stored(&*store, &plain)?, plain)
}

pub(crate) fn brings_its_trail(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = task("a")?;
    let trail = [step(&task, 1, Trigger::Adopted), step(&task, 2, Trigger::Dispatch)];
    accepted(&*store, &[create(&task, &trail)])?;
    same("the trail", store.history(&task.id, 0, 10)?, trail.to_vec())
}

pub(crate) fn leaves_side_channel(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let plain = task("a")?;
    let mut task = plain.clone();
    task.progress = Some(Box::new(progress(3.0)));
    task.last_heartbeat_at = Some(at(3));
    task.lease_until = Some(at(1000));
    accepted(&*store, &[create(&task, &[])])?;
    same("lease, progress and heartbeat after a create", stored(&*store, &task)?, plain)
}

pub(crate) fn taken_id_is_refused(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = full("a")?;
    accepted(&*store, &[create(&first, &[step(&first, 1, Trigger::Adopted)])])?;
    let second = task("a")?;
    let again = create(&second, &[step(&second, 2, Trigger::Dispatch)]);
    refused(&*store, again, EntryError::Exists)?;
    same("the first task", stored(&*store, &first)?, first.clone())?;
    same("its trail", versions(&*store, &first)?, vec![1])
}

pub(crate) fn taken_in_the_same_batch(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (first, second) = (full("a")?, task("a")?);
    let seen = store.write(&[create(&first, &[]), create(&second, &[])])?;
    same("two creates of one id", seen, vec![Ok(()), Err(EntryError::Exists)])?;
    same("the stored task", stored(&*store, &first)?, first)
}

pub(crate) fn unknown_is_nothing(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let unknown = task("unknown")?;
    same("a task that nobody created", store.get(&unknown.id)?, None)?;
    same("its trail", store.history(&unknown.id, 0, 10)?, vec![])
}
