use std::time::Duration;

use chongming_core::store::*;
use chongming_core::{Status, StatusSet};

use crate::store::{FAR, Store, appended, clock_at, save};

saboteurs! {
    only_ended_tasks / takes_the_idle_for_ended: prune = |store, request, now| {
        for mut task in unfinished(store) {
            let version = task.status_version();
            task.ended_at = Some(task.updated_at);
            store.put(save(task.restored(Status::Failed, version + 1), version, vec![])).unwrap();
        }
        store.memory.prune(request, now)
    };
    only_before_the_time / includes_the_time: prune = |store, request, now| {
        let before = request.before.after(Duration::from_micros(1));
        store.memory.prune(&PruneRequest { before, ..*request }, now)
    };
    takes_trail_and_commands / leaves_the_commands: commands = |store, task| {
        let requests = store.notes.requests.lock().unwrap().clone();
        let mine = requests.into_iter().filter(|request| request.task_id == *task);
        let command =
            |request| Command { request, claimed_until: None, receipt: None, completed_at: None };
        Ok(mine.map(command).collect())
    };
    frees_the_id / remembers_every_id: write = |store, entries| {
        store.one_by_one(entries, |entry, _| {
            let known = store.notes.entries();
            let same = |old: &&Entry| old.task_id() == entry.task_id();
            let is_create = matches!(entry, Entry::Create { .. });
            (is_create && known.iter().filter(same).count() > 1).then_some(Err(EntryError::Exists))
        })
    };
    stops_at_its_limit / ignores_the_limit: prune = |store, request, now| {
        store.memory.prune(&PruneRequest { limit: usize::MAX, ..*request }, now)
    };
    dry_run_only_counts / deletes_in_a_dry_run: prune = |store, request, now| {
        store.memory.prune(&PruneRequest { dry_run: false, ..*request }, now)
    };
    nodes_long_dead / keeps_every_node: prune = |store, request, now| {
        let pruned = store.memory.prune(&PruneRequest { dry_run: true, ..*request }, now)?;
        Ok(Pruned { nodes: 0, ..pruned })
    };
    nodes_that_live_stay / believes_the_age: prune = |store, request, _| {
        store.memory.prune(request, clock_at(FAR, Now::Store))
    };
    nodes_named_by_unfinished_tasks_stay / forgets_the_holders: prune = |store, request, now| {
        for mut task in unfinished(store) {
            task.supervisor = None;
            store.put(appended(task, &[])).unwrap();
        }
        store.memory.prune(request, now)
    };
    store_clock_decides / has_a_fast_clock: prune = |store, request, now| {
        store.memory.prune(request, clock_at(FAR, now))
    };
}

fn unfinished(store: &Store) -> Vec<chongming_core::TaskSnapshot> {
    store.all(&TaskFilter { statuses: Some(StatusSet::unfinished()), ..TaskFilter::default() })
}
