//! The reactor's letter box.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chongming_core::Signal;
use rustix::event::{EventfdFlags, eventfd};

use crate::child::NewChild;

/// Names one attempt within its executor.
pub(crate) type ChildId = u64;

/// What the reactor is told.
#[derive(Default)]
pub(crate) struct Mail {
    /// Children that were started, each with the signals that came meanwhile.
    pub(crate) started: Vec<(NewChild, Vec<Signal>)>,
    /// The rest.
    pub(crate) letters: Vec<Letter>,
}

/// What concerns children that the reactor has.
pub(crate) enum Letter {
    /// A signal for a child.
    Signal(ChildId, Signal),
    /// Kill all children and end.
    Close,
}

/// Takes letters from any thread, and wakes the reactor.
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    wake: OwnedFd,
    /// Launches under way: started, or about to be, and not handed over.
    launching: AtomicUsize,
}

#[derive(Default)]
struct Letters {
    mail: Mail,
    is_woken: bool,
    is_closing: bool,
}

impl Mailbox {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { letters: Mutex::default(), wake, launching: AtomicUsize::new(0) })
    }

    /// Never blocks.
    pub(crate) fn send(&self, letter: Letter) {
        let mut letters = lock(&self.letters);
        letters.is_closing |= matches!(letter, Letter::Close);
        letters.mail.letters.push(letter);
        self.wake(&mut letters);
    }

    /// Hands a child over, which the reactor finds when its descriptors have something for it: `watch` makes
    /// it wait for them, and says whether it has to look at once.
    pub(crate) fn hand_over(
        &self,
        mut child: NewChild,
        kept: Vec<Signal>,
        watch: impl FnOnce(&mut NewChild) -> bool,
    ) {
        let mut letters = lock(&self.letters);
        // Under the lock, so that the reactor gets the letter before it acts on what it waited for.
        let is_urgent = watch(&mut child) || !kept.is_empty() || letters.is_closing;
        letters.mail.started.push((child, kept));
        if is_urgent {
            self.wake(&mut letters);
        }
    }

    /// Takes all mail.
    pub(crate) fn take(&self) -> Mail {
        let mut letters = lock(&self.letters);
        if mem::take(&mut letters.is_woken) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.wake, &mut count);
        }
        mem::take(&mut letters.mail)
    }

    /// Readable when there are letters that cannot wait.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// A launch is under way until the answer is dropped.
    pub(crate) fn launching(&self) -> Launching<'_> {
        self.launching.fetch_add(1, Ordering::SeqCst);
        Launching(&self.launching)
    }

    /// Is every child that was started known to the reader of the mail?
    pub(crate) fn is_settled(&self) -> bool {
        self.launching.load(Ordering::SeqCst) == 0 && lock(&self.letters).mail.started.is_empty()
    }

    fn wake(&self, letters: &mut Letters) {
        if !mem::replace(&mut letters.is_woken, true) {
            // Cannot fail: the counter cannot overflow, and we own the descriptor.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// A launch that is under way.
pub(crate) struct Launching<'a>(&'a AtomicUsize);

impl Drop for Launching<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A panic elsewhere leaves our data whole, so its mark is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
