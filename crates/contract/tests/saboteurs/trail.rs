use chongming_core::TaskId;
use chongming_core::store::*;

use crate::store::{Answer, Refusable, Store, appended};

saboteurs! {
    repeated_row_is_skipped / last_row_wins: history = |store, id, after, limit| {
        let mut rows = store.memory.history(id, after, limit)?;
        for entry in store.notes.entries().iter() {
            if let Entry::Save { transitions, .. } = entry {
                for new in transitions.iter().filter(|row| row.task_id == *id) {
                    rows.iter_mut()
                        .filter(|row| row.version == new.version)
                        .for_each(|row| *row = new.clone());
                }
            }
        }
        Ok(rows)
    };
    ascends_whatever_came_first / descends: history = |store, id, after, limit| {
        let mut rows = store.memory.history(id, after, limit)?;
        rows.reverse();
        Ok(rows)
    };
    refused_save_leaves_no_row / appends_before_it_looks: write = leaves_rows_of_the_refused;
    is_read_in_parts / includes_the_version: history = |store, id, after, limit| {
        store.memory.history(id, after.saturating_sub(1), limit)
    };
    is_read_in_parts / ignores_the_limit: history = |store, id, after, _| {
        store.memory.history(id, after, usize::MAX)
    };
    belongs_to_one_task / looks_at_the_first_letter: history = |store, id, after, limit| {
        let letter: String = id.as_str().chars().take(1).collect();
        store.memory.history(&TaskId::new(letter).unwrap(), after, limit)
    };
}

/// Rows of a refused entry land all the same.
pub(crate) fn leaves_rows_of_the_refused(
    store: &Store,
    entries: &[Entry],
) -> Answer<Vec<Refusable>> {
    store.one_by_one(entries, |entry, stored| {
        let done = store.put(entry.clone());
        if let (
            Err(_),
            Some(stored),
            Entry::Create { transitions, .. } | Entry::Save { transitions, .. },
        ) = (&done, stored, entry)
        {
            store.put(appended(stored, transitions)).unwrap();
        }
        Some(done)
    })
}
