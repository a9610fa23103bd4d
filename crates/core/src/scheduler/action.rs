//! What goes in and out of the scheduler, as values.

use std::sync::Arc;
use std::time::Duration;

use crate::executor::Signal;
use crate::retry::RetryPolicy;
use crate::scheduler::slab::TaskKey;
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::timeout::Timeout;
use crate::transition::{Transition, Trigger};

/// What one submission is held to; shared by all submissions that change nothing of their definition's.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// When a failed attempt is followed by another.
    pub retry: RetryPolicy,
    /// The time-outs.
    pub timeout: Timeout,
    /// Time that a stop may take before it becomes a kill, or the task `lost`.
    pub grace: Duration,
    /// Can its executor kill?
    pub hard_stop: bool,
}

/// How a submission starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Accepted at once.
    Queued,
    /// Waits for its upstream: see [`Scheduler::release`](super::Scheduler::release).
    Blocked,
    /// Takes over a stored task whose holder is gone.
    Adopted,
}

/// What a person or the orchestration asks of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// End it, for this cause.
    End(EndCause),
    /// Suspend it; rolled back unless it is reached within the limit.
    Pause {
        /// How long it may take.
        limit: Duration,
    },
    /// Let it go on.
    Resume,
}

/// Who wants a task to end, weakest first: while it is stopping, the cause can only be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndCause {
    /// An attempt took too long.
    TimeoutAttempt,
    /// No sign of life.
    TimeoutIdle,
    /// Another node of its pipeline failed.
    FailFast,
    /// A person withdrew it.
    Cancel,
    /// The controller shuts down.
    Shutdown,
    /// A person stopped it.
    Stop,
}

impl EndCause {
    /// The trigger of the transition into `stopping`, or into the end of a task that waits.
    #[must_use]
    pub const fn trigger(self) -> Trigger {
        match self {
            Self::TimeoutAttempt => Trigger::TimeoutAttempt,
            Self::TimeoutIdle => Trigger::TimeoutIdle,
            Self::FailFast => Trigger::FailFast,
            Self::Cancel => Trigger::UserCancel,
            Self::Shutdown => Trigger::Shutdown,
            Self::Stop => Trigger::UserStop,
        }
    }

    /// Where a confirmed stop for this cause ends; `None` = a time-out, for the retry policy to decide.
    #[must_use]
    pub const fn end(self) -> Option<Status> {
        match self {
            Self::TimeoutAttempt | Self::TimeoutIdle => None,
            Self::FailFast | Self::Cancel => Some(Status::Cancelled),
            Self::Shutdown | Self::Stop => Some(Status::Stopped),
        }
    }
}

/// Why a request is not possible; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The task is not here (any more).
    Unknown,
    /// It has ended.
    Ended(Status),
    /// Not in this state.
    NotNow(Status),
}

/// Names a request whose outcome somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What became of an accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is as asked (for a stop: it is under way, or done).
    Done,
    /// The pause was not reached in time; the task goes on.
    NotConfirmed,
    /// The task ended first.
    Ended(Status),
}

/// What the scheduler wants done, in this order.
#[derive(Debug)]
pub enum Action<P> {
    /// Write this through.
    Record {
        /// Whose.
        key: TaskKey,
        /// The audit row; the state is [`Scheduler::snapshot`](super::Scheduler::snapshot).
        transition: Transition,
    },
    /// Progress or heartbeat changed.
    Touch(TaskKey),
    /// Its `starting` is written: start the carrier.
    Launch(TaskKey),
    /// Pass this on to the carrier.
    Signal(TaskKey, Signal),
    /// Tell whoever waits for this request.
    Reply(Ticket, Reply),
    /// It has ended, that is written, and the scheduler has forgotten it.
    Finished(Box<Finished<P>>),
}

/// A task at its end.
#[derive(Debug)]
pub struct Finished<P> {
    /// The key that it had.
    pub key: TaskKey,
    /// Its last state.
    pub snapshot: Arc<TaskSnapshot>,
    /// What was handed in with it.
    pub payload: P,
    /// Somebody else writes this task: the store knows its end, not we.
    pub disowned: bool,
}
