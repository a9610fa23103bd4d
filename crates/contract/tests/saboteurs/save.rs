use chongming_core::IncarnationId;
use chongming_core::store::*;

use crate::store::{Answer, Refusable, Store, save, touch};

saboteurs! {
    moves_the_task / drops_the_trail: write = |store, entries| {
        store.changed(entries, |entry| {
            if let Entry::Save { transitions, .. } = entry {
                transitions.clear();
            }
        })
    };
    writes_every_field / keeps_the_priority: write = |store, entries| {
        store.with_states(entries, |task| {
            if let Some(old) = store.memory.get(&task.id).unwrap() {
                task.priority = old.priority;
            }
        })
    };
    clears_fields / keeps_the_label: write = |store, entries| {
        store.with_states(entries, |task| {
            let old = store.memory.get(&task.id).unwrap();
            task.label = task.label.clone().or(old.and_then(|old| old.label));
        })
    };
    leaves_what_submission_fixed / writes_the_creation: get = |store, id| {
        let mut task = store.memory.get(id)?;
        if let (Some(task), Some(saved)) = (&mut task, store.notes.last_save(id)) {
            task.created_at = saved.created_at;
        }
        Ok(task)
    };
    leaves_side_channel / writes_the_progress: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry {
            Entry::Save { snapshot, .. } => {
                let done = store.put(entry.clone());
                let _ = store.put(touch(snapshot, snapshot.progress.clone(), None));
                Some(done)
            }
            _ => None,
        })
    };
    leaves_the_lease / writes_the_lease: get = |store, id| {
        let mut task = store.memory.get(id)?;
        if let (Some(task), Some(saved)) = (&mut task, store.notes.last_save(id)) {
            task.lease_until = saved.lease_until;
        }
        Ok(task)
    };
    other_version_is_a_conflict / ignores_the_version: write = ignores_versions;
    any_larger_version_will_do / wants_the_next_version: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry {
            Entry::Save { snapshot, expect_version, .. }
                if snapshot.status_version() > expect_version + 1 =>
            {
                Some(Err(EntryError::NotNewer))
            }
            _ => None,
        })
    };
    version_must_grow / accepts_the_same_version: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match store.put(entry.clone()) {
            Err(EntryError::NotNewer) => Some(Ok(())),
            done => Some(done),
        })
    };
    unknown_is_not_found / creates: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry.clone(), stored) {
            (Entry::Save { snapshot, transitions, .. }, None) => {
                Some(store.put(Entry::Create { snapshot, transitions }))
            }
            _ => None,
        })
    };
    first_reason_is_told / looks_at_the_new_version_first: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry {
            Entry::Save { snapshot, expect_version, .. }
                if snapshot.status_version() <= *expect_version =>
            {
                Some(Err(EntryError::NotNewer))
            }
            _ => None,
        })
    };
    first_reason_is_told / looks_at_the_lease_first: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored?) {
            (Entry::Save { if_expired: Some(now), .. }, old) => {
                let until = lease(store, &old.supervisor?, *now)?;
                Some(Err(EntryError::LeaseHeld { until }))
            }
            _ => None,
        })
    };
}

/// Until when the holder's lease lasts, if it does.
fn lease(store: &Store, holder: &IncarnationId, now: Now) -> Option<chongming_core::Timestamp> {
    let rows = store.memory.nodes(now).unwrap();
    let row = rows.into_iter().find(|row| row.node.incarnation == *holder && row.alive)?;
    Some(row.lease_until)
}

/// The last writer wins.
pub(crate) fn ignores_versions(store: &Store, entries: &[Entry]) -> Answer<Vec<Refusable>> {
    store.one_by_one(entries, |entry, stored| match (entry.clone(), stored?) {
        (Entry::Save { snapshot, transitions, .. }, old) => {
            Some(store.put(save(snapshot, old.status_version(), transitions)))
        }
        _ => None,
    })
}
