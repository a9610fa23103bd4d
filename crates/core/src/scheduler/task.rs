//! One task in memory: its snapshot, and what only its holder needs to know.

use std::sync::Arc;
use std::time::Duration;

use crate::scheduler::action::{EndCause, Policy, Reply, Ticket};
use crate::scheduler::admission::{LaneId, Rank};
use crate::scheduler::siblings::Siblings;
use crate::snapshot::TaskSnapshot;
use crate::task::ACTIVITY_RESOLUTION;
use crate::text::Text;

pub(super) struct Task<P> {
    /// Shared with writes under way and with whoever is told: changed by copy while it is.
    pub(super) snapshot: Arc<TaskSnapshot>,
    pub(super) policy: Arc<Policy>,
    pub(super) payload: P,
    pub(super) siblings: Option<Siblings>,
    pub(super) phase: Phase,
    /// When the start time-out runs out; void once it has started.
    pub(super) start_by: Option<Duration>,
    /// The latest version that is written, or recorded as not written.
    pub(super) settled: u64,
    /// Replies that wait until this version is settled.
    pub(super) replies: Vec<(u64, Ticket, Reply)>,
    /// Where it stands among the timers.
    pub(super) due: Option<Duration>,
    /// Somebody else writes it: nothing is written any more.
    pub(super) disowned: bool,
}

/// What goes with the status.
pub(super) enum Phase {
    /// `pending`, `blocked`, or ended.
    Idle,
    /// `queued`.
    Queued { lane: LaneId, rank: Rank },
    /// `retry_wait`.
    RetryWait { due: Duration },
    /// `starting` to `stopping`.
    Carried(Box<Carried>),
}

/// One attempt on its carrier.
pub(super) struct Carried {
    pub(super) lane: LaneId,
    pub(super) carrier: Carrier,
    pub(super) run_time: RunTime,
    /// Run time at the last sign of life.
    pub(super) active_at: Duration,
    pub(super) pauses: u64,
    pub(super) pause: Option<Pause>,
    pub(super) stop: Option<Stop>,
}

/// How far the launch has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// Not launched: `starting` must be settled first, at this version.
    AwaitsWrite(u64),
    /// Launched or being launched.
    Up,
}

/// A pause under way.
pub(super) struct Pause {
    pub(super) by: Duration,
    pub(super) tickets: Vec<Ticket>,
}

/// A stop under way.
pub(super) struct Stop {
    pub(super) cause: EndCause,
    pub(super) reason: Option<Text>,
    /// When the grace (and, after a kill, the patience) is used up.
    pub(super) by: Duration,
    pub(super) killed: bool,
}

/// A stop-watch that does not count pauses.
#[derive(Clone, Copy)]
pub(super) struct RunTime {
    before: Duration,
    since: Option<Duration>,
}

impl RunTime {
    pub(super) fn started(now: Duration) -> Self {
        Self { before: Duration::ZERO, since: Some(now) }
    }

    pub(super) fn at(&self, now: Duration) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    pub(super) fn hold(&mut self, now: Duration) {
        self.before = self.at(now);
        self.since = None;
    }

    pub(super) fn go_on(&mut self, now: Duration) {
        self.since.get_or_insert(now);
    }

    /// When the run time will reach this; `None` while held.
    fn reaches(&self, limit: Duration) -> Option<Duration> {
        self.since?.checked_add(limit.saturating_sub(self.before))
    }
}

impl<P> Task<P> {
    /// Its state, to change.
    pub(super) fn state_mut(&mut self) -> &mut TaskSnapshot {
        Arc::make_mut(&mut self.snapshot)
    }

    pub(super) fn carried(&self) -> Option<&Carried> {
        match &self.phase {
            Phase::Carried(carried) => Some(carried),
            Phase::Idle | Phase::Queued { .. } | Phase::RetryWait { .. } => None,
        }
    }

    pub(super) fn carried_mut(&mut self) -> Option<&mut Carried> {
        match &mut self.phase {
            Phase::Carried(carried) => Some(carried),
            Phase::Idle | Phase::Queued { .. } | Phase::RetryWait { .. } => None,
        }
    }

    /// The earliest moment at which time alone changes something. May be too early, never too late.
    pub(super) fn next_due(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Queued { .. } => self.start_by,
            Phase::RetryWait { due } => Some(*due),
            Phase::Carried(carried) => match &carried.stop {
                Some(stop) => Some(stop.by),
                None => [
                    carried.attempt_due(self.policy.timeout.per_attempt),
                    carried.idle_due(self.policy.timeout.idle),
                    carried.pause.as_ref().map(|pause| pause.by),
                ]
                .into_iter()
                .flatten()
                .min(),
            },
        }
    }
}

impl Carried {
    pub(super) fn attempt_due(&self, limit: Option<Duration>) -> Option<Duration> {
        self.run_time.reaches(limit?)
    }

    /// Signs of life are reported at a resolution, so silence is certain only that much later.
    pub(super) fn idle_due(&self, limit: Option<Duration>) -> Option<Duration> {
        let silence = limit?.saturating_add(ACTIVITY_RESOLUTION);
        match self.carrier {
            Carrier::AwaitsWrite(_) => None,
            Carrier::Up => self.run_time.reaches(self.active_at.saturating_add(silence)),
        }
    }
}
