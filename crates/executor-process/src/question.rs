//! Whether an attempt may begin: asked before its child is started, and again if much time passed until then.
//!
//! This process may be stopped, or the machine sleep, between the answer and the start, and the task be
//! another's when they wake. Nothing of ours runs in a child before its program does, so only the parent can look
//! at the clock: when the child has been started, which is when its program is just being loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use chongming_core::AttemptSink;
use rustix::process::Signal as Posix;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::group::Group;

/// How long an answer is good for: half of the shortest lease, since a lease is renewed for an answer when that
/// much of it is gone.
const GOOD_FOR: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The question about one attempt.
pub(crate) struct Question<'a> {
    sink: &'a dyn AttemptSink,
    asked: Timespec,
}

impl<'a> Question<'a> {
    pub(crate) fn new(sink: &'a dyn AttemptSink) -> Self {
        Self { sink, asked: now() }
    }

    /// May it begin?
    pub(crate) fn ask(&mut self) -> bool {
        self.asked = now();
        self.sink.may_begin()
    }

    /// May its child go on, which was just started? Asked again, with the child held, when the answer is old. When
    /// it may not, it has been ended.
    pub(crate) fn confirm(&mut self, group: &mut Group) -> bool {
        // One that nobody may hold any more goes the way of all children.
        if now() - self.asked <= GOOD_FOR || group.signal(Posix::STOP).is_err() {
            return true;
        }
        // A panic must not leave it held.
        let may = catch_unwind(AssertUnwindSafe(|| self.ask())).unwrap_or(false);
        if !may && group.end() {
            return false;
        }
        let _ = group.signal(Posix::CONT);
        true
    }
}

/// By the clock that goes on while the machine sleeps.
fn now() -> Timespec {
    clock_gettime(ClockId::Boottime)
}
