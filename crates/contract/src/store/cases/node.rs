//! Node rows, leases, and saves that they guard.

use std::time::Duration;

use chongming_core::store::{Beat, EntryError, Node, Now, TaskStore};
use chongming_core::{BucketSet, Status, TaskSnapshot};

use crate::breach::{Outcome, present, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, create, held, incarnation, node, now, refused, save, save_if_expired,
    stored, task_in,
};

/// Owners of the nodes, latest start first, with whether they live.
fn listed(store: &dyn TaskStore, time: i64) -> Outcome<Vec<(String, bool)>> {
    let rows = store.nodes(now(time))?;
    Ok(rows.iter().map(|row| (row.node.incarnation.to_string(), row.alive)).collect())
}

pub(crate) fn reads_back(data: &dyn Data) -> Outcome {
    let store = data.connect();
    same("nodes of an empty store", store.nodes(now(0))?, vec![])?;
    let whole = node("whole", "owner-1", at(3))?;
    let bare = Node { owned_buckets: None, artifacts: None, ..node("bare", "owner-2", at(2))? };
    let none = Node {
        owned_buckets: Some(BucketSet::default()),
        pid: u32::MAX,
        ..node("none", "owner-3", at(1))?
    };
    for node in [&bare, &none, &whole] {
        store.beat(node, MINUTE, now(10))?;
    }
    let rows = store.nodes(now(10))?;
    for row in &rows {
        same("the lease of a row", row.lease_until, at(70))?;
        same("a row that lives", row.alive, true)?;
    }
    let seen: Vec<Node> = rows.into_iter().map(|row| row.node).collect();
    same("nodes, latest start first", seen, vec![whole, bare, none])
}

pub(crate) fn beat_renews(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let node = node("life-1", "owner-1", at(0))?;
    let beat = |time: i64| store.beat(&node, MINUTE, now(time));
    let answer = |time: i64, had_lapsed| Beat { lease_until: at(time + 60), had_lapsed };
    same("the first beat", beat(0)?, answer(0, false))?;
    same("a beat in time", beat(59)?, answer(59, false))?;
    same("a beat at the end of the lease", beat(119)?, answer(119, true))?;
    same("a late beat", beat(500)?, answer(500, true))?;
    same("a beat after a late one", beat(501)?, answer(501, false))?;
    same("the row", listed(&*store, 502)?, vec![("life-1".to_owned(), true)])
}

pub(crate) fn beat_updates_the_declaration(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = node("life-1", "owner-1", at(0))?;
    store.beat(&first, MINUTE, now(0))?;
    let next = Node { owned_buckets: None, artifacts: Some("/other".into()), ..first };
    store.beat(&next, Duration::from_secs(5), now(10))?;
    let rows = store.nodes(now(11))?;
    same("rows of one incarnation", rows.len(), 1)?;
    let row = present("its row", rows.into_iter().next())?;
    same("its lease", row.lease_until, at(15))?;
    same("what it declares", row.node, next)
}

pub(crate) fn beat_is_one_nodes(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, time) in [("life-1", 0), ("life-2", 100), ("life-1", 50)] {
        store.beat(&node(id, "owner-1", at(0))?, MINUTE, now(time))?;
    }
    let rows = store.nodes(now(0))?;
    let leases: Vec<_> =
        rows.iter().map(|row| (row.node.incarnation.as_str(), row.lease_until)).collect();
    same("leases", leases, vec![("life-2", at(160)), ("life-1", at(110))])
}

pub(crate) fn expires_at_its_end(data: &dyn Data) -> Outcome {
    let store = data.connect();
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    for (time, alive) in [(0, true), (59, true), (60, false), (61, false)] {
        same("the node", listed(&*store, time)?, vec![("life-1".to_owned(), alive)])?;
    }
    Ok(())
}

pub(crate) fn retire_ends_the_lease(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for id in ["life-1", "life-2"] {
        store.beat(&node(id, "owner-1", at(0))?, MINUTE, now(0))?;
    }
    store.retire(&incarnation("life-1")?, now(10))?;
    store.retire(&incarnation("unknown")?, now(10))?;
    let expected = vec![("life-2".to_owned(), true), ("life-1".to_owned(), false)];
    same("nodes after one retired", listed(&*store, 10)?, expected)?;
    store.retire(&incarnation("life-1")?, now(50))?;
    let rows = store.nodes(now(20))?;
    let leases: Vec<_> = rows.iter().map(|row| row.lease_until).collect();
    same("leases, of which none grew", leases, vec![at(60), at(10)])?;
    let late = store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(70))?;
    same("a beat after retiring", late.had_lapsed, true)
}

pub(crate) fn store_clock_decides(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let hour = Duration::from_secs(3600);
    let first = store.beat(&node("life-1", "owner-1", at(0))?, hour, Now::Store)?;
    same("the first beat", first.had_lapsed, false)?;
    let again = store.beat(&node("life-1", "owner-1", at(0))?, hour, Now::Store)?;
    same("a beat at once", again.had_lapsed, false)?;
    same("does the lease shrink", again.lease_until < first.lease_until, false)?;
    let rows = store.nodes(Now::Store)?;
    same("a node that has just beaten", rows.iter().all(|row| row.alive), true)?;
    let task = held("a", Status::Running, "life-1")?;
    accepted(&*store, &[create(&task, &[])])?;
    let lost = task_in("a", Status::Lost, 2)?;
    let held = EntryError::LeaseHeld { until: again.lease_until };
    refused(&*store, save_if_expired(&lost, 1, Now::Store), held)?;
    store.retire(&incarnation("life-1")?, Now::Store)?;
    accepted(&*store, &[save_if_expired(&lost, 1, Now::Store)])
}

/// A task that `life-1` holds, with a lease until 60 s.
fn guarded(store: &dyn TaskStore) -> Outcome<(TaskSnapshot, TaskSnapshot)> {
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(0))?;
    let task = held("a", Status::Running, "life-1")?;
    accepted(store, &[create(&task, &[])])?;
    let lost = task.clone().restored(Status::Lost, 2);
    Ok((task, lost))
}

pub(crate) fn guard_holds_while_the_lease_lasts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (task, lost) = guarded(&*store)?;
    for time in [0, 59] {
        let held = EntryError::LeaseHeld { until: at(60) };
        refused(&*store, save_if_expired(&lost, 1, now(time)), held)?;
        same("the task", stored(&*store, &task)?.status(), Status::Running)?;
    }
    accepted(&*store, &[save_if_expired(&lost, 1, now(60))])?;
    same("the task", stored(&*store, &task)?.status(), Status::Lost)
}

pub(crate) fn guard_sees_a_renewal(data: &dyn Data) -> Outcome {
    let (store, other) = (data.connect(), data.connect());
    let (task, lost) = guarded(&*store)?;
    same("the lease as recovery saw it", stored(&*other, &task)?.lease_until, Some(at(60)))?;
    store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(90))?;
    let held = EntryError::LeaseHeld { until: at(150) };
    refused(&*other, save_if_expired(&lost, 1, now(100)), held)?;
    same("the task", stored(&*store, &task)?.status(), Status::Running)
}

pub(crate) fn guard_asks_the_stored_holder(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (_, mut taken) = guarded(&*store)?;
    // The new holder's lease, or that it has none, says nothing about the old one's.
    taken.supervisor = Some(incarnation("life-2")?);
    let held = EntryError::LeaseHeld { until: at(60) };
    refused(&*store, save_if_expired(&taken, 1, now(30)), held)?;
    store.beat(&node("life-2", "owner-2", at(0))?, MINUTE, now(30))?;
    accepted(&*store, &[save_if_expired(&taken, 1, now(60))])?;
    let back = taken.clone().restored(Status::Lost, 3);
    refused(&*store, save_if_expired(&back, 2, now(60)), EntryError::LeaseHeld { until: at(90) })
}

pub(crate) fn guard_lets_through_without_holder(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let tasks = [task_in("a", Status::Queued, 1)?, held("b", Status::Queued, "no-row")?];
    for task in &tasks {
        accepted(&*store, &[create(task, &[])])?;
        let next = task.clone().restored(Status::Stopped, 2);
        accepted(&*store, &[save_if_expired(&next, 1, now(0))])?;
    }
    Ok(())
}

pub(crate) fn no_guard_no_question(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (_, lost) = guarded(&*store)?;
    accepted(&*store, &[save(&lost, 1)])
}

pub(crate) fn guard_is_its_entrys(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (task, lost) = guarded(&*store)?;
    let free = task_in("free", Status::Queued, 1)?;
    accepted(&*store, &[create(&free, &[])])?;
    let ended = free.clone().restored(Status::Stopped, 2);
    let seen = store.write(&[
        save_if_expired(&lost, 1, now(1)),
        save_if_expired(&ended, 1, now(1)),
        create(&task_in("new", Status::Queued, 1)?, &[]),
    ])?;
    let held = Err(EntryError::LeaseHeld { until: at(60) });
    same("a batch with one guard that holds", seen, vec![held, Ok(()), Ok(())])?;
    same("the guarded task", stored(&*store, &task)?.status(), Status::Running)?;
    same("the task without holder", stored(&*store, &free)?, ended)
}

pub(crate) fn guard_sees_the_batch_before_it(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (task, _) = guarded(&*store)?;
    store.beat(&node("life-2", "owner-2", at(0))?, MINUTE, now(100))?;
    // At 120 s the first holder is dead; the second, who takes the task in the same batch, lives.
    let mut taken = task.clone().restored(Status::Queued, 2);
    taken.supervisor = Some(incarnation("life-2")?);
    let lost = task.clone().restored(Status::Lost, 3);
    let seen = store
        .write(&[save_if_expired(&taken, 1, now(120)), save_if_expired(&lost, 2, now(120))])?;
    let held = Err(EntryError::LeaseHeld { until: at(160) });
    same("two guarded saves of one task in a batch", seen, vec![Ok(()), held])?;
    same("the task's state", stored(&*store, &task)?.status(), Status::Queued)
}
