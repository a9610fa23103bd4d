use std::sync::atomic::Ordering;

use chongming_core::store::*;

use crate::store::{Shared, Store};

saboteurs! {
    later_calls_are_refused / does_nothing: close = |_| Ok(());
    later_calls_are_refused / forgets_to_look: is_closed = |store, operation| {
        store.closed.load(Ordering::SeqCst) && operation != "pinned"
    };
    may_come_twice / refuses_the_second: close = |store| {
        match store.closed.swap(true, Ordering::SeqCst) {
            true => Err(StoreError::closed("close")),
            false => Ok(()),
        }
    };
    keeps_what_was_written / starts_afresh: connect = |shared, fault| {
        match shared.notes.call() {
            1 => Store::on(shared, fault),
            _ => Store::on(&Shared::default(), fault),
        }
    };
    is_not_needed / starts_afresh_for_the_next: connect = |shared, fault| {
        match shared.notes.call() {
            1 => Store::on(shared, fault),
            _ => Store::on(&Shared::default(), fault),
        }
    };
    is_one_stores_own / closes_for_all: close = |store| store.memory.close();
}
