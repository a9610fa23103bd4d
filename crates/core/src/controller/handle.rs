//! What a caller holds of a submitted task (spec 6).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::controller::submit::SubmitError;
use crate::failure::Failure;
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::value::Value;

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its last state.
    pub snapshot: Arc<TaskSnapshot>,
}

impl Outcome {
    /// Where it ended.
    #[must_use]
    pub fn status(&self) -> Status {
        self.snapshot.status()
    }

    /// Did it succeed?
    #[must_use]
    pub fn ok(&self) -> bool {
        self.status() == Status::Succeeded
    }

    /// What it returned; `null` for a task that returned nothing or did not succeed.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.snapshot.value.as_deref().unwrap_or(&Value::Null)
    }

    /// Why it failed.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.snapshot.failure.as_deref()
    }
}

/// The time for a wait ran out; the task is not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimedOut;

impl fmt::Display for WaitTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task did not end in the time given; it goes on")
    }
}

impl std::error::Error for WaitTimedOut {}

/// Where a submission's fate is announced: first that it was taken in, then how it ended.
#[derive(Default)]
pub(super) struct Completion {
    /// Taken in: to be seen without the lock, at every settled write.
    is_accepted: AtomicBool,
    state: Mutex<Fate>,
    changed: Condvar,
}

#[derive(Default)]
struct Fate {
    refused: Option<Box<SubmitError>>,
    ended: Option<End>,
    watchers: Vec<Watcher>,
    waiting: u32,
}

/// Told of an end. Called under locks: all that it may do is to send.
pub(super) type Watcher = Box<dyn FnOnce() + Send>;

/// How a task ended, as its holder knows.
#[derive(Clone)]
pub(super) struct End {
    pub(super) outcome: Arc<Outcome>,
    /// The store knows better.
    pub(super) disowned: bool,
}

impl Completion {
    /// `true` when somebody waits for that, who is to be [woken](Self::wake).
    pub(super) fn accept(&self) -> bool {
        !self.is_accepted.swap(true, Ordering::Relaxed) && self.fate().waiting > 0
    }

    /// Wakes whoever waits.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.is_accepted.load(Ordering::Relaxed)
    }

    /// Has no effect on a submission that was taken in: a close rejects whatever is left.
    pub(super) fn reject(&self, error: SubmitError) {
        self.change(|fate| {
            if !self.is_accepted() {
                fate.refused.get_or_insert_with(|| Box::new(error));
            }
        });
    }

    pub(super) fn end(&self, end: End) {
        self.is_accepted.store(true, Ordering::Relaxed);
        self.change(|fate| {
            fate.ended = Some(end);
            fate.watchers.drain(..).for_each(|watcher| watcher());
        });
    }

    /// Has this told of the end, at once if that has come.
    pub(super) fn watch(&self, watcher: Watcher) {
        let mut fate = self.fate();
        if fate.ended.is_some() {
            watcher();
        } else {
            fate.watchers.push(watcher);
        }
    }

    /// Waits until the submission is taken in or refused.
    pub(super) fn wait_accepted(&self) -> Result<(), SubmitError> {
        let accepted = self.wait(None, |fate| match &fate.refused {
            Some(error) => Some(Err(SubmitError::clone(error))),
            None => self.is_accepted().then_some(Ok(())),
        });
        accepted.unwrap_or(Ok(()))
    }

    /// Is it taken in or refused within this time?
    pub(super) fn is_decided_within(&self, limit: Duration) -> bool {
        let decided = |fate: &Fate| (fate.refused.is_some() || self.is_accepted()).then_some(());
        self.wait(Some(limit), decided).is_some()
    }

    /// Waits until the task has ended; without a time, as long as it takes.
    pub(super) fn wait_ended(&self, timeout: Option<Duration>) -> Option<End> {
        self.wait(timeout, |fate| fate.ended.clone())
    }

    fn wait<T>(&self, timeout: Option<Duration>, get: impl Fn(&Fate) -> Option<T>) -> Option<T> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut fate = self.fate();
        loop {
            if let Some(found) = get(&fate) {
                return Some(found);
            }
            fate.waiting += 1;
            fate = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => {
                    fate.waiting -= 1;
                    return None;
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(fate, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(fate).unwrap_or_else(PoisonError::into_inner),
            };
            fate.waiting -= 1;
        }
    }

    /// Wakes only where somebody waits: most tasks end unattended.
    fn change(&self, change: impl FnOnce(&mut Fate)) {
        let mut fate = self.fate();
        change(&mut fate);
        if fate.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_in_is_not_refused_any_more() {
        let completion = Completion::default();
        completion.accept();
        completion.reject(SubmitError::Closed);
        assert!(completion.wait_accepted().is_ok());
    }

    #[test]
    fn a_refusal_stands() {
        let completion = Completion::default();
        completion.reject(SubmitError::Closed);
        completion.accept();
        assert!(matches!(completion.wait_accepted(), Err(SubmitError::Closed)));
    }
}
