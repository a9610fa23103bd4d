//! Whether an attempt may begin: asked before its child is started, and again if much time passed until then.
//!
//! This process may be stopped, or the machine sleep, between the answer and the start, and the task be
//! another's when they wake. Nothing of ours runs in a child before its program does, so only the parent can look
//! at the clock: when the child has been started, which is when its program is just being loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use chongming_core::{AttemptSink, MAY_BEGIN_GOOD_FOR};
use rustix::process::{Pid, Signal as Posix};

use crate::group::Group;
use crate::procfs::{Stat, since_boot};

/// The answer that an attempt may begin.
pub(crate) struct Yes<'a> {
    sink: &'a dyn AttemptSink,
    asked: Duration,
}

impl<'a> Yes<'a> {
    /// Asks for it.
    pub(crate) fn of(sink: &'a dyn AttemptSink) -> Option<Self> {
        let asked = since_boot();
        sink.may_begin().then_some(Self { sink, asked })
    }

    /// May its child go on, which was just started? Asked again, with the child held, when it was started on an
    /// answer that was old by then. When it may not, nothing is left of it.
    pub(crate) fn confirm(self, group: &mut Group) -> bool {
        // One that nobody may hold any more goes the way of all children.
        if since_boot().saturating_sub(self.asked) <= MAY_BEGIN_GOOD_FOR
            || group.signal(Posix::STOP).is_err()
        {
            return true;
        }
        // Where this process stood still after the start, the child has run meanwhile, as others have. A panic must
        // not leave it held.
        let may = self.was_good_for(group.leader())
            || catch_unwind(AssertUnwindSafe(|| Self::of(self.sink).is_some())).unwrap_or(false);
        // So does one that has already run to its end, since a signal succeeds on what is not collected yet.
        if !may && group.peek_exit().is_none() && group.end() {
            return false;
        }
        let _ = group.signal(Posix::CONT);
        true
    }

    /// Was the answer good when this process was started?
    fn was_good_for(&self, leader: Pid) -> bool {
        Stat::of(leader.as_raw_nonzero().get())
            .is_some_and(|stat| stat.started_by() <= self.asked + MAY_BEGIN_GOOD_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::Report;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::ffi::CStr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::exit::Exit;
    use crate::sys::{Place, Spawn, spawn};

    /// Says yes once, and counts.
    #[derive(Default)]
    struct Once(AtomicU32);

    impl AttemptSink for Once {
        fn report(&self, _: Report) {}

        fn may_begin(&self) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst) == 0
        }
    }

    fn child(program: &CStr, argv: &[&CStr]) -> Group {
        let leader =
            spawn(&Spawn { program, argv, env: &[], cwd: c"/", fds: &[], place: Place::OwnGroup });
        Group::of_new_child(leader.unwrap()).unwrap()
    }

    fn sleeper() -> Group {
        child(c"/bin/sleep", &[c"sleep", c"1000"])
    }

    fn stand_still() {
        std::thread::sleep(MAY_BEGIN_GOOD_FOR * 2);
    }

    #[test]
    fn a_child_that_was_started_in_time_goes_on_however_late_it_is_looked_at() {
        let sink = Once::default();
        let yes = Yes::of(&sink).unwrap();
        let mut group = sleeper();
        stand_still();
        assert!(yes.confirm(&mut group));
        assert_eq!(sink.0.load(Ordering::SeqCst), 1);
        assert!(!group.is_leader_stopped());
        assert!(group.end());
    }

    #[test]
    fn one_that_was_started_late_ends_by_a_second_no() {
        let sink = Once::default();
        let yes = Yes::of(&sink).unwrap();
        stand_still();
        let mut group = sleeper();
        assert!(!yes.confirm(&mut group));
        assert_eq!(sink.0.load(Ordering::SeqCst), 2);
        assert!(!group.end(), "nothing is left");
    }

    #[test]
    fn one_that_has_ended_by_then_was_launched_whatever_the_second_answer() {
        let sink = Once::default();
        let yes = Yes::of(&sink).unwrap();
        stand_still();
        let mut group = child(c"/bin/true", &[c"true"]);
        poll(&mut [PollFd::from_borrowed_fd(group.pidfd(), PollFlags::IN)], None).unwrap();
        assert!(yes.confirm(&mut group));
        assert_eq!(group.peek_exit(), Some(Exit::Code(0)), "its end is still to be told");
        group.reap();
    }
}
