//! The reactor's letter box.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chongming_core::Signal;
use rustix::event::{EventfdFlags, eventfd};

use crate::reactor::NewChild;

/// Names one attempt within its executor.
pub(crate) type ChildId = u64;

/// What the reactor is told.
pub(crate) enum Letter {
    /// A child was started; these signals came meanwhile.
    Started(Box<NewChild>, Vec<Signal>),
    /// A signal for a child.
    Signal(ChildId, Signal),
    /// Kill all children and end.
    Close,
}

/// Takes letters from any thread, and wakes the reactor.
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    wake: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { letters: Mutex::default(), wake })
    }

    /// Never blocks.
    pub(crate) fn send(&self, letter: Letter) {
        let mut letters = lock(&self.letters);
        letters.push(letter);
        if letters.len() == 1 {
            // Cannot fail: the counter cannot overflow, and we own the descriptor.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Takes all letters.
    pub(crate) fn take(&self) -> Vec<Letter> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut count);
        mem::take(&mut lock(&self.letters))
    }

    /// Readable when there are letters.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// A panic elsewhere leaves our data whole, so its mark is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
