use chongming_core::Progress;
use chongming_core::store::*;

use crate::store::appended;

saboteurs! {
    changes_nothing_else / moves_the_version: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored?) {
            (Entry::Touch(_), old) => {
                let done = store.put(entry.clone());
                let touched = store.memory.get(&old.id).unwrap()?;
                store.put(appended(touched, &[])).unwrap();
                Some(done)
            }
            _ => None,
        })
    };
    leaves_what_it_does_not_name / resets_the_progress: write = |store, entries| {
        store.changed(entries, |entry| {
            if let Entry::Touch(touch) = entry {
                let none = Progress { done: 0.0, total: None, unit: None, message: None };
                touch.progress.get_or_insert_with(|| Box::new(none));
            }
        })
    };
    replaces_progress_whole / merges_the_progress: write = |store, entries| {
        store.changed(entries, |entry| {
            let old = store.memory.get(entry.task_id()).unwrap().and_then(|old| old.progress);
            if let (Entry::Touch(Touch { progress: Some(new), .. }), Some(old)) = (entry, old) {
                new.total = new.total.or(old.total);
            }
        })
    };
    needs_no_version / wants_a_new_task: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored?.status_version()) {
            (Entry::Touch(_), stored) if stored > 0 => Some(Err(EntryError::Conflict { stored })),
            _ => None,
        })
    };
    unknown_is_not_found / accepts_the_unknown: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored) {
            (Entry::Touch(_), None) => Some(Ok(())),
            _ => None,
        })
    };
}
