//! Counts the threads that run bodies, by letting each thread say when it ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The living threads of each key that have run a body.
static ALIVE: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static SIGNED: RefCell<Signed> = const { RefCell::new(Signed(Vec::new())) };
}

/// The keys for which this thread counts, until it ends.
struct Signed(Vec<u64>);

impl Drop for Signed {
    fn drop(&mut self) {
        let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &self.0 {
            if let Some(count) = alive.get_mut(key) {
                *count -= 1;
            }
        }
        CHANGED.notify_all();
    }
}

/// This thread counts for this key, from now to its end. How many do?
pub(super) fn sign(key: u64) -> usize {
    let is_new = SIGNED.with_borrow_mut(|signed| {
        let is_new = !signed.0.contains(&key);
        if is_new {
            signed.0.push(key);
        }
        is_new
    });
    let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let count = alive.entry(key).or_default();
    *count += usize::from(is_new);
    *count
}

/// Waits until no living thread counts for this key; how many still do?
pub(super) fn await_none(key: u64, patience: Duration) -> usize {
    let count = |alive: &mut BTreeMap<u64, usize>| alive.get(&key).copied().unwrap_or_default();
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = CHANGED.wait_timeout_while(alive, patience, |alive| count(alive) > 0);
    count(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
}
