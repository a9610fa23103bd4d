//! Closing.

use chongming_core::store::{
    CommandKind, PruneRequest, Receipt, ReceiptKind, StoreErrorKind, TaskFilter, TaskQuery,
    TaskStore,
};
use chongming_core::{CommandId, Status, Trigger};

use crate::breach::{Outcome, fails, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, command, create, full, incarnation, node, now, progress, save_with, step,
    stored, task, touch, versions,
};

/// Every call of the trait must say that the store is closed.
fn all_closed(store: &dyn TaskStore) -> Outcome {
    let closed = StoreErrorKind::Closed;
    let (task, holder, id) = (task("a")?, incarnation("life-1")?, CommandId::new("c")?);
    let query = TaskQuery { filter: TaskFilter::default(), after: None, limit: 1 };
    let receipt = Receipt::new(ReceiptKind::Applied, "");
    let request = PruneRequest { before: at(0), limit: 1, dry_run: true };
    fails("write", store.write(&[create(&task, &[])]), closed)?;
    fails("write of nothing", store.write(&[]), closed)?;
    fails("get", store.get(&task.id), closed)?;
    fails("query", store.query(&query), closed)?;
    fails("count", store.count(&query.filter), closed)?;
    fails("history", store.history(&task.id, 0, 1), closed)?;
    fails("submit_command", store.submit_command(&command("c", "a", "life-1")?), closed)?;
    fails("claim_commands", store.claim_commands(&holder, 1, MINUTE, now(0)), closed)?;
    fails("complete_command", store.complete_command(&id, &receipt, now(0)), closed)?;
    fails("release_command", store.release_command(&id), closed)?;
    fails("commands", store.commands(&task.id), closed)?;
    fails("beat", store.beat(&node("life-1", "o", at(0))?, MINUTE, now(0)), closed)?;
    fails("retire", store.retire(&holder, now(0)), closed)?;
    fails("nodes", store.nodes(now(0)), closed)?;
    fails("pin", store.pin("fact", "value"), closed)?;
    fails("pinned", store.pinned("fact"), closed)?;
    fails("prune", store.prune(&request, now(0)), closed)?;
    store.subscribe(&holder, std::sync::Arc::new(|| ()));
    Ok(())
}

pub(crate) fn later_calls_are_refused(data: &dyn Data) -> Outcome {
    let store = data.connect();
    accepted(&*store, &[create(&task("a")?, &[])])?;
    store.close()?;
    all_closed(&*store)
}

pub(crate) fn may_come_twice(data: &dyn Data) -> Outcome {
    let store = data.connect();
    store.close()?;
    store.close()?;
    all_closed(&*store)
}

pub(crate) fn keeps_what_was_written(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = full("a")?;
    let next = task.clone().restored(Status::Failed, 10);
    let row = step(&task, 10, Trigger::Failed);
    accepted(&*store, &[create(&task, &[step(&task, 9, Trigger::Failed)])])?;
    accepted(&*store, &[save_with(&next, 9, &[row]), touch(&task, Some(progress(2.0)), None)])?;
    store.submit_command(&command("c", "a", "life-1")?)?;
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    store.pin("num_buckets", "128")?;
    let expected = stored(&*store, &task)?;
    store.close()?;
    let again = data.connect();
    if !data.outlives_close() {
        // A store that keeps nothing must not pretend to be a fresh one.
        return all_closed(&*again);
    }
    same("the task", stored(&*again, &task)?, expected)?;
    same("its trail", versions(&*again, &task)?, vec![9, 10])?;
    let kinds: Vec<_> =
        again.commands(&task.id)?.into_iter().map(|command| command.request.kind).collect();
    same("its commands", kinds, vec![CommandKind::Stop])?;
    same("nodes", again.nodes(now(0))?.len(), 1)?;
    same("the fact", again.pinned("num_buckets")?, Some("128".to_owned()))
}

pub(crate) fn is_not_needed(data: &dyn Data) -> Outcome {
    let task = task("a")?;
    let row = step(&task, 1, Trigger::Adopted);
    let store = data.connect();
    accepted(&*store, &[create(&task, &[row])])?;
    store.submit_command(&command("c", "a", "life-1")?)?;
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    store.pin("num_buckets", "128")?;
    drop(store); // as when its process is killed
    let again = data.connect();
    same("the task", stored(&*again, &task)?, task.clone())?;
    same("its trail", versions(&*again, &task)?, vec![1])?;
    same("its commands", again.commands(&task.id)?.len(), 1)?;
    same("nodes", again.nodes(now(0))?.len(), 1)?;
    same("the fact", again.pinned("num_buckets")?, Some("128".to_owned()))
}

pub(crate) fn is_one_stores_own(data: &dyn Data) -> Outcome {
    if !data.outlives_close() {
        return Ok(()); // one store is all there is: `keeps_what_was_written` tests its refusal
    }
    let (one, other) = (data.connect(), data.connect());
    let task = task("a")?;
    accepted(&*one, &[create(&task, &[])])?;
    one.close()?;
    same("the task, for another store", stored(&*other, &task)?, task.clone())?;
    accepted(&*other, &[touch(&task, None, Some(at(1)))])
}
