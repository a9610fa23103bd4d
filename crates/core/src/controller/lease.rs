//! The lease of this incarnation, as far as its own clocks know (spec 12): may anything begin under it?

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::time::Moment;

/// A lease is renewed this often within its time.
pub(super) const BEATS: u32 = 8;
/// What begins has this part of the lease left to get going: a lease that is older is renewed before.
const YOUNG: u32 = 2;
/// The shortest lease, in milliseconds.
const MIN_MILLIS: u32 = 100;
/// The shortest lease.
pub(super) const MIN_LEASE_TTL: Duration = Duration::from_millis(MIN_MILLIS as u64);
/// How long an answer of [`may_begin`](crate::AttemptSink::may_begin) is good for: what is left of the shortest
/// lease at worst.
pub const MAY_BEGIN_GOOD_FOR: Duration = Duration::from_millis((MIN_MILLIS / YOUNG) as u64);

/// How it stands with the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Renewed lately: nobody else can have taken anything since.
    Good,
    /// A renewal was tried a moment ago, in vain: the store cannot be reached, and work goes on (spec 10).
    OutOfReach,
    /// Neither: this process stood still, or a try is under way.
    Doubtful,
}

#[derive(Default)]
pub(super) struct Lease {
    state: Mutex<State>,
    tried: Condvar,
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    is_node: bool,
    is_over: bool,
    is_retired: bool,
    /// When the latest renewal began, with which all was seen to that an earlier lapse may have cost.
    renewed: Option<Moment>,
    /// When the latest try began that came to nothing.
    failed: Option<Moment>,
    /// Tries that have ended.
    tries: u64,
    is_asked: bool,
}

impl Lease {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is this controller a node by now?
    pub(super) fn is_node(&self) -> bool {
        self.state().is_node
    }

    /// Makes it one; `false` when it was.
    pub(super) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state().is_node, true)
    }

    /// Nothing begins any more.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.tried.notify_all();
    }

    /// Gives it up, in one's turn: nobody renews it any more.
    pub(super) fn retire(&self) {
        self.state().is_retired = true;
    }

    pub(super) fn is_retired(&self) -> bool {
        self.state().is_retired
    }

    pub(super) fn standing(&self, now: Moment, ttl: Duration) -> Standing {
        self.state().standing(now, ttl)
    }

    /// The turn of one who renews. Without it, another's renewal would look good while what the lapse before
    /// it has cost is still being looked for.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store says that it had lapsed.
    pub(super) fn lapsed(&self) {
        self.state().renewed = None;
    }

    /// A renewal that began at this time is complete.
    pub(super) fn renewed(&self, at: Moment) {
        let mut state = self.state();
        state.renewed = Some(at);
        state.tries += 1;
        self.tried.notify_all();
    }

    /// A renewal that began at this time came to nothing.
    pub(super) fn failed(&self, at: Moment) {
        let mut state = self.state();
        state.failed = Some(at);
        state.tries += 1;
        self.tried.notify_all();
    }

    /// Asks the node thread for a renewal out of turn.
    pub(super) fn ask(&self) {
        self.state().is_asked = true;
    }

    /// Was it asked for?
    pub(super) fn take_asked(&self) -> bool {
        std::mem::take(&mut self.state().is_asked)
    }

    /// The same for what is about to begin, with how many tries have ended; nothing once it is over.
    pub(super) fn for_start(&self, now: Moment, ttl: Duration) -> Option<(Standing, u64)> {
        let state = self.state();
        (!state.is_over).then(|| (state.standing(now, ttl), state.tries))
    }

    /// Waits until one more has ended than these, at most this long.
    pub(super) fn await_try(&self, before: u64, limit: Duration) {
        let state = self.state();
        let none = |state: &mut State| state.tries == before && !state.is_over;
        drop(self.tried.wait_timeout_while(state, limit, none));
    }
}

impl State {
    fn standing(&self, now: Moment, ttl: Duration) -> Standing {
        let within = |at: Option<Moment>, limit| at.is_some_and(|at| age(at, now) < limit);
        if within(self.renewed, ttl / YOUNG) {
            Standing::Good
        } else if within(self.failed, ttl / BEATS) {
            Standing::OutOfReach
        } else {
            Standing::Doubtful
        }
    }
}

/// The longer of two measures: a monotonic clock may stand still while the whole machine sleeps, and the wall
/// clock may be stepped back. One that is stepped forward costs a renewal.
fn age(at: Moment, now: Moment) -> Duration {
    now.mono.saturating_sub(at.mono).max(now.wall.since(at.wall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    const TTL: Duration = Duration::from_secs(8);

    fn at(mono: u64, wall: u64) -> Moment {
        let wall = Timestamp::from_micros(0).after(Duration::from_secs(wall));
        Moment { wall, mono: Duration::from_secs(mono) }
    }

    #[test]
    fn it_is_good_for_half_its_time_by_either_clock() {
        let lease = Lease::default();
        assert_eq!(lease.standing(at(0, 50), TTL), Standing::Doubtful, "never renewed");
        lease.renewed(at(10, 50));
        for (mono, wall, standing) in [
            (10, 50, Standing::Good),
            (13, 53, Standing::Good),
            (14, 54, Standing::Doubtful),
            // The machine slept, and its monotonic clock with it.
            (10, 54, Standing::Doubtful),
            // The wall clock was stepped back.
            (13, 20, Standing::Good),
            (14, 20, Standing::Doubtful),
        ] {
            assert_eq!(lease.standing(at(mono, wall), TTL), standing, "{mono} {wall}");
        }
        lease.lapsed();
        assert_eq!(lease.standing(at(10, 50), TTL), Standing::Doubtful);
    }

    #[test]
    fn a_try_in_vain_counts_for_one_beat() {
        let lease = Lease::default();
        lease.failed(at(10, 50));
        assert_eq!(lease.standing(at(10, 50), TTL), Standing::OutOfReach);
        assert_eq!(lease.standing(at(11, 51), TTL), Standing::Doubtful);
        lease.renewed(at(11, 51));
        lease.failed(at(12, 52));
        assert_eq!(lease.standing(at(12, 52), TTL), Standing::Good, "what was renewed lasts");
        lease.end();
        assert_eq!(lease.standing(at(12, 52), TTL), Standing::Good, "for the last writes");
        assert!(lease.for_start(at(12, 52), TTL).is_none() && !lease.is_retired());
    }
}
