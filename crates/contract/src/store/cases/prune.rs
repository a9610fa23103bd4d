//! Pruning.

use std::time::Duration;

use chongming_core::store::{Now, PruneRequest, Pruned, TaskFilter, TaskStore};
use chongming_core::{Status, TaskSnapshot, Trigger};

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, command, create, finds, held, node, now, step, stored, task, task_in,
    versions,
};

fn request(before: i64) -> PruneRequest {
    PruneRequest { before: at(before), limit: usize::MAX, dry_run: false }
}

/// Prunes when all leases of the cases have expired.
fn prune(store: &dyn TaskStore, request: PruneRequest) -> Outcome<Pruned> {
    Ok(store.prune(&request, now(100_000))?)
}

fn ended(id: &str, time: i64) -> Outcome<TaskSnapshot> {
    let mut task = task_in(id, Status::Succeeded, 4)?;
    task.ended_at = Some(at(time));
    Ok(task)
}

pub(crate) fn only_ended_tasks(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for status in Status::ALL {
        let mut task = task_in(status.as_str(), status, 1)?;
        task.updated_at = at(-1000);
        accepted(&*store, &[create(&task, &[])])?;
    }
    let seen = prune(&*store, request(1))?;
    same("pruned", seen, Pruned { tasks: 6, nodes: 0 })?;
    let left = [
        "stopping",
        "paused",
        "pausing",
        "running",
        "starting",
        "retry_wait",
        "queued",
        "blocked",
        "pending",
    ];
    finds(&*store, TaskFilter::default(), &left)
}

pub(crate) fn only_before_the_time(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, time) in [("a", 9), ("b", 10), ("c", 11)] {
        accepted(&*store, &[create(&ended(id, time)?, &[])])?;
    }
    same("pruned", prune(&*store, request(10))?.tasks, 1)?;
    finds(&*store, TaskFilter::default(), &["c", "b"])
}

pub(crate) fn takes_trail_and_commands(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let (gone, kept) = (ended("gone", 1)?, task("kept")?);
    for task in [&gone, &kept] {
        accepted(&*store, &[create(task, &[step(task, 1, Trigger::Adopted)])])?;
        store.submit_command(&command(task.id.as_str(), task.id.as_str(), "life-1")?)?;
    }
    prune(&*store, request(10))?;
    same("the pruned task", store.get(&gone.id)?, None)?;
    same("its trail", store.history(&gone.id, 0, 10)?, vec![])?;
    same("its commands", store.commands(&gone.id)?, vec![])?;
    same("the kept task", stored(&*store, &kept)?, kept.clone())?;
    same("its trail", versions(&*store, &kept)?, vec![1])?;
    same("its commands", store.commands(&kept.id)?.len(), 1)
}

pub(crate) fn frees_the_id(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = ended("a", 1)?;
    accepted(&*store, &[create(&first, &[step(&first, 9, Trigger::Adopted)])])?;
    prune(&*store, request(10))?;
    let second = task("a")?;
    accepted(&*store, &[create(&second, &[step(&second, 1, Trigger::Dispatch)])])?;
    same("the new task", stored(&*store, &second)?, second.clone())?;
    same("its trail", versions(&*store, &second)?, vec![1])
}

pub(crate) fn stops_at_its_limit(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for id in ["a", "b", "c", "d", "e"] {
        accepted(&*store, &[create(&ended(id, 1)?, &[])])?;
    }
    let two = PruneRequest { limit: 2, ..request(10) };
    for expected in [2, 2, 1, 0] {
        same("tasks pruned in one call", prune(&*store, two)?.tasks, expected)?;
    }
    finds(&*store, TaskFilter::default(), &[])
}

pub(crate) fn dry_run_only_counts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let task = ended("a", 1)?;
    accepted(&*store, &[create(&task, &[step(&task, 1, Trigger::Adopted)])])?;
    for (id, start) in [("old", 0), ("new", 1)] {
        store.beat(&node(id, "owner-1", at(start))?, MINUTE, now(0))?;
    }
    let dry = PruneRequest { dry_run: true, ..request(100) };
    same("what would be pruned", prune(&*store, dry)?, Pruned { tasks: 1, nodes: 1 })?;
    same("the task", stored(&*store, &task)?, task.clone())?;
    same("its trail", versions(&*store, &task)?, vec![1])?;
    same("node rows", store.nodes(now(0))?.len(), 2)?;
    same("what is pruned", prune(&*store, request(100))?, Pruned { tasks: 1, nodes: 1 })
}

fn node_ids(store: &dyn TaskStore) -> Outcome<Vec<String>> {
    Ok(store.nodes(now(0))?.iter().map(|row| row.node.incarnation.to_string()).collect())
}

pub(crate) fn nodes_long_dead(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, start, time) in [("first", 0, 0), ("second", 1, 50), ("third", 2, 0)] {
        store.beat(&node(id, "owner-1", at(start))?, MINUTE, now(time))?;
    }
    store.beat(&node("alone", "owner-2", at(0))?, MINUTE, now(0))?;
    // Leases end at 60 s and 110 s; each owner's latest start stays whatever its lease.
    same("nodes pruned", prune(&*store, request(60))?.nodes, 0)?;
    same("nodes pruned", prune(&*store, request(61))?.nodes, 1)?;
    let expected = ["third", "second", "alone"].map(String::from);
    same("nodes left", node_ids(&*store)?, expected.to_vec())?;
    same("nodes pruned", prune(&*store, request(1000))?.nodes, 1)?;
    same("nodes left", node_ids(&*store)?, ["third", "alone"].map(String::from).to_vec())
}

pub(crate) fn nodes_that_live_stay(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, start) in [("old", 0), ("new", 1)] {
        store.beat(&node(id, "owner-1", at(start))?, MINUTE, now(0))?;
    }
    let pruned = store.prune(&request(1000), now(30))?;
    same("nodes pruned while their leases last", pruned.nodes, 0)
}

pub(crate) fn nodes_named_by_unfinished_tasks_stay(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, start) in [("busy", 0), ("idle", 1), ("latest", 2)] {
        store.beat(&node(id, "owner-1", at(start))?, MINUTE, now(0))?;
    }
    let tasks = [held("a", Status::Queued, "busy")?, held("b", Status::Failed, "idle")?];
    for task in &tasks {
        accepted(&*store, &[create(task, &[])])?;
    }
    let late = PruneRequest { limit: 0, ..request(1000) };
    same("pruned", prune(&*store, late)?, Pruned { tasks: 0, nodes: 1 })?;
    same("nodes left", node_ids(&*store)?, ["latest", "busy"].map(String::from).to_vec())
}

pub(crate) fn store_clock_decides(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let hour = Duration::from_secs(3600);
    for (id, start) in [("old", 0), ("new", 1)] {
        store.beat(&node(id, "owner-1", at(start))?, hour, Now::Store)?;
    }
    // Every lease ended before that time, as far as the request knows; by the store's clock they last.
    let late = PruneRequest { before: at(1_000_000_000), limit: 9, dry_run: false };
    let seen = store.prune(&late, Now::Store)?;
    same("nodes pruned while their leases last", seen.nodes, 0)
}
