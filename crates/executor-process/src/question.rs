//! Whether an attempt may begin: asked before its child is started, and again if much time passed until then.
//!
//! This process may be stopped, or the machine sleep, between the answer and the start, and the task be
//! another's when they wake. Nothing of ours runs in a child before its program does, so only the parent can look
//! at the clock: when the child has been started, which is when its program is just being loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use chongming_core::AttemptSink;
use rustix::process::{Pid, Signal as Posix};
use rustix::time::{ClockId, clock_gettime};

use crate::group::Group;
use crate::procfs::Stat;

/// How long an answer is good for: half of the shortest lease, since a lease is renewed for an answer when that
/// much of it is gone.
const GOOD_FOR: Duration = Duration::from_millis(50);

/// The question about one attempt.
pub(crate) struct Question<'a> {
    sink: &'a dyn AttemptSink,
    asked: Duration,
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

    /// May its child go on, which was just started? Asked again, with the child held, when it was started on an
    /// answer that was old by then. When it may not, it has been ended.
    pub(crate) fn confirm(&mut self, group: &mut Group) -> bool {
        // One that nobody may hold any more goes the way of all children.
        if now().saturating_sub(self.asked) <= GOOD_FOR || group.signal(Posix::STOP).is_err() {
            return true;
        }
        // Where this process stood still after the start, the child has run meanwhile, as others have. A panic must
        // not leave it held.
        let may = self.was_good_for(group.leader())
            || catch_unwind(AssertUnwindSafe(|| self.ask())).unwrap_or(false);
        if !may && group.end() {
            return false;
        }
        let _ = group.signal(Posix::CONT);
        true
    }

    /// Was the answer good when this process was started?
    fn was_good_for(&self, leader: Pid) -> bool {
        Stat::of(leader.as_raw_nonzero().get())
            .is_some_and(|stat| stat.started_by() <= self.asked + GOOD_FOR)
    }
}

/// The time since boot, also while the machine slept.
fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::Report;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::sys::{Place, Spawn, spawn};

    /// Says no, and counts.
    #[derive(Default)]
    struct No(AtomicU32);

    impl AttemptSink for No {
        fn report(&self, _: Report) {}

        fn may_begin(&self) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            false
        }
    }

    fn child() -> Group {
        let leader = spawn(&Spawn {
            program: c"/bin/sleep",
            argv: &[c"sleep", c"1000"],
            env: &[],
            cwd: c"/",
            fds: &[],
            place: Place::OwnGroup,
        });
        Group::of_new_child(leader.unwrap()).unwrap()
    }

    fn stand_still() {
        std::thread::sleep(GOOD_FOR * 2);
    }

    #[test]
    fn a_child_that_was_started_in_time_goes_on_however_late_it_is_looked_at() {
        let sink = No::default();
        let mut group = child();
        let mut question = Question::new(&sink);
        stand_still();
        assert!(question.confirm(&mut group));
        assert_eq!(sink.0.load(Ordering::SeqCst), 0);
        assert!(!group.is_leader_stopped());
        assert!(group.end());
    }

    #[test]
    fn one_that_was_started_late_ends_by_a_second_no() {
        let sink = No::default();
        let mut question = Question::new(&sink);
        stand_still();
        let mut group = child();
        assert!(!question.confirm(&mut group));
        assert_eq!(sink.0.load(Ordering::SeqCst), 1);
        assert!(!group.end(), "nothing is left");
    }
}
