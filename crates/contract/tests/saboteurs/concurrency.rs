//! Races are not left to chance: each fault does what a race would, at a call that is sure to come.

use chongming_core::store::*;

use crate::save::ignores_versions;
use crate::store::{Shared, Store, broken};

saboteurs! {
    one_connection_sees_another / each_has_its_own_data: connect = |_, fault| {
        Store::on(&Shared::default(), fault)
    };
    one_creator_wins / everybody_creates: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match store.put(entry.clone()) {
            Err(EntryError::Exists) => Some(Ok(())),
            done => Some(done),
        })
    };
    one_saver_wins / last_writer_wins: write = ignores_versions;
    no_increment_is_lost / acknowledges_what_it_loses: write = |store, entries| {
        match store.notes.call().is_multiple_of(10) {
            true => Ok(vec![Ok(()); entries.len()]),
            false => store.memory.write(entries),
        }
    };
    every_batch_lands / is_busy_now_and_then: write = |store, entries| {
        match store.notes.call().is_multiple_of(10) {
            true => Err(broken("busy")),
            false => store.memory.write(entries),
        }
    };
    one_adopter_wins / guards_without_versions: write = |store, entries| {
        store.one_by_one(entries, |entry, stored| match (entry, stored?) {
            (Entry::Save { snapshot, if_expired: Some(_), .. }, old) => {
                let version = old.status_version();
                let next = (**snapshot).clone().restored(snapshot.status(), version + 1);
                Some(store.put(crate::store::save(next, version, vec![])))
            }
            _ => None,
        })
    };
    touches_and_saves_both_land / loses_the_last_touch: write = |store, entries| {
        store.one_by_one(entries, |entry, _| match entry {
            Entry::Touch(Touch { progress: Some(progress), .. }) if progress.done == 25.0 => {
                Some(Ok(()))
            }
            _ => None,
        })
    };
    trail_is_never_behind / writes_the_trail_later: history = |store, id, after, limit| {
        let mut rows = store.memory.history(id, after, limit)?;
        rows.pop();
        Ok(rows)
    };
    no_command_goes_twice / gives_the_last_one_again: claim = |store, holder, limit, lease, now| {
        let mut claimed = store.memory.claim_commands(holder, limit, lease, now)?;
        claimed.extend(store.notes.claimed.lock().unwrap().first().cloned());
        Ok(claimed)
    };
    vanished_claimer_is_replaced / claims_for_ever: claim = |store, holder, limit, _, now| {
        store.memory.claim_commands(holder, limit, std::time::Duration::MAX, now)
    };
    one_pin_wins / answers_what_was_asked: pin = |store, fact, value| {
        store.memory.pin(fact, value).map(|_| value.to_owned())
    };
}
