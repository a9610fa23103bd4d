use std::time::Duration;

use chongming_core::store::*;
use chongming_core::{IncarnationId, Timestamp};

use crate::store::{Answer, FAR, Refusable, Store, clock_at};

saboteurs! {
    reads_back / forgets_the_folder: beat = |store, node, ttl, now| {
        store.memory.beat(&Node { artifacts: None, ..node.clone() }, ttl, now)
    };
    beat_renews / never_lapses: beat = |store, node, ttl, now| {
        Ok(Beat { had_lapsed: false, ..store.memory.beat(node, ttl, now)? })
    };
    beat_updates_the_declaration / keeps_the_first: beat = |store, node, ttl, now| {
        let rows = store.memory.nodes(now)?;
        let first = rows.into_iter().find(|row| row.node.incarnation == node.incarnation);
        store.memory.beat(&first.map_or_else(|| node.clone(), |row| row.node), ttl, now)
    };
    beat_is_one_nodes / renews_the_owners_others: beat = |store, node, ttl, now| {
        for other in store.memory.nodes(now)?.iter().filter(|row| row.node.owner == node.owner) {
            store.memory.beat(&other.node, ttl, now)?;
        }
        store.memory.beat(node, ttl, now)
    };
    expires_at_its_end / lives_for_ever: nodes = |store, now| {
        let mut rows = store.memory.nodes(now)?;
        rows.iter_mut().for_each(|row| row.alive = true);
        Ok(rows)
    };
    retire_ends_the_lease / does_nothing: retire = |_, _, _| Ok(());
    retire_ends_the_lease / prolongs_it: retire = |store, id, now| {
        for row in store.memory.nodes(now)?.iter().filter(|row| row.node.incarnation == *id) {
            store.memory.beat(&row.node, Duration::ZERO, now)?;
        }
        Ok(())
    };
    store_clock_decides / judges_by_another_clock: nodes = |store, now| {
        store.memory.nodes(clock_at(FAR, now))
    };
    guard_holds_while_the_lease_lasts / ignores_guards: write = |store, entries| {
        unguarded_where(store, entries, |_, _| true)
    };
    guard_sees_a_renewal / remembers_the_first_lease: write = |store, entries| {
        unguarded_where(store, entries, |holder, now| {
            let leases = store.notes.leases.lock().unwrap();
            let first = leases.iter().find(|(id, _)| Some(id) == holder);
            first.is_some_and(|(_, until)| *until <= now)
        })
    };
    guard_asks_the_stored_holder / asks_the_new_one: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry.clone() {
            Entry::Save { snapshot, expect_version, transitions, if_expired: Some(now) } => {
                let rows = store.memory.nodes(now).unwrap();
                let held = rows.iter().find(|row| {
                    Some(&row.node.incarnation) == snapshot.supervisor.as_ref() && row.alive
                });
                Some(match held {
                    Some(row) => Err(EntryError::LeaseHeld { until: row.lease_until }),
                    None => store.put(crate::store::save(snapshot, expect_version, transitions)),
                })
            }
            _ => None,
        })
    };
    guard_lets_through_without_holder / wants_a_row: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored?.lease_until) {
            (Entry::Save { if_expired: Some(_), .. }, None) => {
                Some(Err(EntryError::LeaseHeld { until: Timestamp::from_micros(0) }))
            }
            _ => None,
        })
    };
    no_guard_no_question / always_asks: write = |store, entries| {
        store.changed(entries, |entry| {
            if let Entry::Save { if_expired, .. } = entry {
                if_expired.get_or_insert(Now::At(Timestamp::from_micros(0)));
            }
        })
    };
    guard_is_its_entrys / refuses_the_whole_batch: write = |store, entries| {
        let answers = store.memory.write(entries)?;
        let held = |answer: &&Refusable| matches!(answer, Err(EntryError::LeaseHeld { .. }));
        Ok(match answers.iter().find(held).cloned() {
            Some(refusal) => vec![refusal; answers.len()],
            None => answers,
        })
    };
    guard_sees_the_batch_before_it / judges_before_it_writes: write = |store, entries| {
        let free = |entry: &Entry| match entry {
            Entry::Save { snapshot, if_expired: Some(now), .. } => {
                let task = store.memory.get(&snapshot.id).unwrap();
                let rows = store.memory.nodes(*now).unwrap();
                let holder = task.and_then(|task| task.supervisor);
                !rows.iter().any(|row| Some(&row.node.incarnation) == holder.as_ref() && row.alive)
            }
            _ => false,
        };
        let mut entries = entries.to_vec();
        for entry in &mut entries {
            if free(entry) && let Entry::Save { if_expired, .. } = entry {
                *if_expired = None;
            }
        }
        store.memory.write(&entries)
    };
}

/// Guards are ignored where `is_free` says so of the stored holder, at the time that the guard names.
fn unguarded_where(
    store: &Store,
    entries: &[Entry],
    is_free: impl Fn(Option<&IncarnationId>, Timestamp) -> bool,
) -> Answer<Vec<Refusable>> {
    store.changed(entries, |entry| {
        let task = store.memory.get(entry.task_id()).unwrap();
        let holder = task.as_ref().and_then(|task| task.supervisor.as_ref());
        if let Entry::Save { if_expired, .. } = entry
            && let Some(Now::At(now)) = *if_expired
            && is_free(holder, now)
        {
            *if_expired = None;
        }
    })
}
