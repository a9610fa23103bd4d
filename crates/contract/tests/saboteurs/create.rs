use std::sync::Arc;

use chongming_core::store::*;

use crate::store::{broken, save, touch};

saboteurs! {
    reads_back / forgets_the_bucket_key: write = |store, entries| {
        store.with_states(entries, |task| task.bucket_key = None)
    };
    brings_its_trail / drops_the_trail: write = |store, entries| {
        store.changed(entries, |entry| {
            if let Entry::Create { transitions, .. } = entry {
                transitions.clear();
            }
        })
    };
    leaves_side_channel / writes_the_heartbeat: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry {
            Entry::Create { snapshot, .. } => {
                let done = store.put(entry.clone());
                let _ = store.put(touch(snapshot, None, snapshot.last_heartbeat_at));
                Some(done)
            }
            _ => None,
        })
    };
    taken_id_is_refused, taken_in_the_same_batch / replaces: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry.clone(), stored?) {
            (Entry::Create { snapshot, transitions }, old) => {
                let version = old.status_version();
                let next = Arc::unwrap_or_clone(snapshot).restored(old.status(), version + 1);
                Some(store.put(save(next, version, transitions)))
            }
            _ => None,
        })
    };
    unknown_is_nothing / finds_nothing_an_error: get = |store, id| {
        store.memory.get(id)?.map(Some).ok_or_else(|| broken("not found"))
    };
}
