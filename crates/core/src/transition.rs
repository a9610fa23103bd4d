//! The legal transitions as data (spec 1): who may go where, and on which trigger.

use std::fmt;
use std::str::FromStr;

use crate::id::TaskId;
use crate::status::Status;
use crate::text::Text;
use crate::time::Timestamp;

macro_rules! triggers {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What moved a task, written `source:event`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Trigger {
            $($(#[$doc])* $name,)+
        }

        impl Trigger {
            /// All triggers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word that stores, JSON and tables use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

triggers! {
    /// Its upstream is ready (a plain submission has none).
    DependenciesResolved = "orchestrator:dependencies_resolved",
    /// It must wait for its upstream.
    WaitingForUpstream = "orchestrator:waiting_for_upstream",
    /// Its upstream can no longer satisfy it.
    UpstreamUnsatisfied = "orchestrator:upstream_unsatisfied",
    /// Another node of its pipeline failed.
    FailFast = "orchestrator:fail_fast",
    /// A person stopped it.
    UserStop = "user:stop",
    /// A person withdrew it.
    UserCancel = "user:cancel",
    /// A person paused it.
    UserPause = "user:pause",
    /// A person resumed it.
    UserResume = "user:resume",
    /// The controller that holds it shuts down.
    Shutdown = "runtime:shutdown",
    /// It was not started in time.
    TimeoutStart = "runtime:timeout_start",
    /// The attempt took too long.
    TimeoutAttempt = "runtime:timeout_attempt",
    /// No sign of life for too long.
    TimeoutIdle = "runtime:timeout_idle",
    /// The carrier is suspended.
    PauseReached = "runtime:pause_reached",
    /// The carrier was not suspended in time: rolled back.
    PauseUnconfirmed = "runtime:pause_unconfirmed",
    /// The back-off is over.
    RetryDue = "runtime:retry_due",
    /// The carrier is gone, as asked by a person, a shutdown or the orchestration.
    StopConfirmed = "runtime:stop_confirmed",
    /// The carrier is gone, as asked by a time-out.
    TimeoutConfirmed = "runtime:timeout_confirmed",
    /// What was told to end, or a part of it, goes on and cannot be ended.
    StopUnconfirmed = "runtime:stop_unconfirmed",
    /// It got a slot.
    Dispatch = "scheduler:dispatch",
    /// Its body runs.
    Launched = "executor:launched",
    /// The carrier could not be started.
    LaunchFailed = "executor:launch_failed",
    /// The body ended well.
    Completed = "executor:completed",
    /// The body failed.
    Failed = "executor:failed",
    /// The carrier is gone and nobody can say how it ended.
    Vanished = "executor:vanished",
    /// A new submission took over a task whose holder is gone.
    Adopted = "recovery:adopted",
    /// Its holder is gone with work in flight.
    LeaseExpired = "recovery:lease_expired",
}

impl Trigger {
    /// `user` for what a person did, else `system`.
    #[must_use]
    pub const fn actor(self) -> Actor {
        match self {
            Self::UserStop | Self::UserCancel | Self::UserPause | Self::UserResume => Actor::User,
            Self::DependenciesResolved
            | Self::WaitingForUpstream
            | Self::UpstreamUnsatisfied
            | Self::FailFast
            | Self::Shutdown
            | Self::TimeoutStart
            | Self::TimeoutAttempt
            | Self::TimeoutIdle
            | Self::PauseReached
            | Self::PauseUnconfirmed
            | Self::RetryDue
            | Self::StopConfirmed
            | Self::TimeoutConfirmed
            | Self::StopUnconfirmed
            | Self::Dispatch
            | Self::Launched
            | Self::LaunchFailed
            | Self::Completed
            | Self::Failed
            | Self::Vanished
            | Self::Adopted
            | Self::LeaseExpired => Actor::System,
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTrigger(String);

impl fmt::Display for UnknownTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no trigger known to this version", self.0)
    }
}

impl std::error::Error for UnknownTrigger {}

impl FromStr for Trigger {
    type Err = UnknownTrigger;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|trigger| trigger.as_str() == word)
            .ok_or_else(|| UnknownTrigger(word.chars().take(60).collect()))
    }
}

/// Who is behind a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A person.
    User,
    /// The product.
    System,
}

impl Actor {
    /// The word that stores, JSON and tables use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One row of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Whose.
    pub task_id: TaskId,
    /// The task's `status_version` after it.
    pub version: u64,
    /// Status before.
    pub from: Status,
    /// Status after.
    pub to: Status,
    /// When, by the wall clock; the order is the version's.
    pub at: Timestamp,
    /// What moved it; the actor follows from it.
    pub trigger: Trigger,
    /// Why, in a person's words.
    pub reason: Option<Text>,
}

impl Transition {
    /// Who is behind it.
    #[must_use]
    pub const fn actor(&self) -> Actor {
        self.trigger.actor()
    }
}

/// One line of the table: each `from` may become `to` on each trigger.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Statuses before.
    pub from: &'static [Status],
    /// Status after.
    pub to: Status,
    /// Triggers that carry it.
    pub triggers: &'static [Trigger],
}

/// The whole table. Everything else is illegal.
pub const RULES: &[Rule] = {
    use Status::*;
    use Trigger as T;
    &[
        Rule { from: &[Pending, Blocked], to: Queued, triggers: &[T::DependenciesResolved] },
        Rule { from: &[Pending], to: Blocked, triggers: &[T::WaitingForUpstream] },
        Rule { from: &[Pending, Blocked], to: Skipped, triggers: &[T::UpstreamUnsatisfied] },
        Rule {
            from: &[Pending, Blocked, Queued, RetryWait, Paused],
            to: Stopped,
            triggers: &[T::UserStop, T::Shutdown],
        },
        Rule {
            from: &[Pending, Blocked, Queued, RetryWait, Paused],
            to: Cancelled,
            triggers: &[T::FailFast, T::UserCancel],
        },
        Rule { from: &[Queued], to: Starting, triggers: &[T::Dispatch] },
        Rule { from: &[Queued], to: Failed, triggers: &[T::TimeoutStart] },
        Rule { from: &[Starting], to: Running, triggers: &[T::Launched] },
        Rule { from: &[Starting], to: RetryWait, triggers: &[T::LaunchFailed] },
        Rule { from: &[Starting], to: Failed, triggers: &[T::LaunchFailed] },
        Rule {
            from: &[Starting, Running, Pausing, Paused],
            to: Stopping,
            triggers: &[
                T::UserStop,
                T::Shutdown,
                T::UserCancel,
                T::FailFast,
                T::TimeoutAttempt,
                T::TimeoutIdle,
            ],
        },
        Rule { from: &[Running, Pausing, Paused], to: Succeeded, triggers: &[T::Completed] },
        Rule { from: &[Running, Pausing, Paused], to: RetryWait, triggers: &[T::Failed] },
        Rule { from: &[Running, Pausing, Paused], to: Failed, triggers: &[T::Failed] },
        Rule { from: &[Running], to: Pausing, triggers: &[T::UserPause] },
        Rule { from: &[Pausing], to: Paused, triggers: &[T::PauseReached] },
        Rule { from: &[Pausing], to: Running, triggers: &[T::PauseUnconfirmed, T::UserResume] },
        Rule { from: &[Paused], to: Running, triggers: &[T::UserResume] },
        Rule {
            from: &[Pending, Blocked, Queued, Paused, RetryWait],
            to: Queued,
            triggers: &[T::Adopted],
        },
        Rule { from: &[RetryWait], to: Queued, triggers: &[T::RetryDue] },
        Rule { from: &[Stopping], to: Stopped, triggers: &[T::StopConfirmed] },
        Rule { from: &[Stopping], to: Cancelled, triggers: &[T::StopConfirmed] },
        Rule { from: &[Stopping], to: RetryWait, triggers: &[T::TimeoutConfirmed, T::Failed] },
        Rule { from: &[Stopping], to: Failed, triggers: &[T::TimeoutConfirmed, T::Failed] },
        Rule { from: &[Stopping], to: Succeeded, triggers: &[T::Completed] },
        Rule { from: &[Stopping], to: Lost, triggers: &[T::StopUnconfirmed] },
        Rule {
            from: &[Starting, Running, Pausing, Stopping],
            to: Lost,
            triggers: &[T::LeaseExpired],
        },
        Rule {
            from: &[Starting, Running, Pausing, Paused, Stopping],
            to: Lost,
            triggers: &[T::Vanished],
        },
    ]
};

/// The triggers that carry `from` to `to`; none when the pair is illegal.
pub fn triggers_between(from: Status, to: Status) -> impl Iterator<Item = Trigger> {
    RULES
        .iter()
        .filter(move |rule| rule.to == to && rule.from.contains(&from))
        .flat_map(|rule| rule.triggers.iter().copied())
}

/// May `trigger` carry `from` to `to`?
#[must_use]
pub fn is_legal(from: Status, to: Status, trigger: Trigger) -> bool {
    triggers_between(from, to).any(|legal| legal == trigger)
}

/// A transition that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalTransition {
    /// Status before.
    pub from: Status,
    /// Status asked for.
    pub to: Status,
    /// Trigger that asked.
    pub trigger: Trigger,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, trigger } = self;
        write!(f, "a task that is {from} cannot become {to} by {trigger}")?;
        if from.is_terminal() { write!(f, ": {from} is an end") } else { Ok(()) }
    }
}

impl std::error::Error for IllegalTransition {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_states_have_no_way_out_and_the_rest_do() {
        for from in Status::ALL {
            let ways = Status::ALL.into_iter().filter(|to| triggers_between(from, *to).count() > 0);
            assert_eq!(ways.count() == 0, from.is_terminal(), "{from}");
        }
    }

    #[test]
    fn adoption_is_the_only_self_transition() {
        for status in Status::ALL {
            let own: Vec<_> = triggers_between(status, status).collect();
            let expected: &[Trigger] =
                if status == Status::Queued { &[Trigger::Adopted] } else { &[] };
            assert_eq!(own, expected, "{status}");
        }
    }

    #[test]
    fn no_rule_says_the_same_twice_and_every_trigger_is_used() {
        let mut seen = std::collections::HashSet::new();
        for rule in RULES {
            for from in rule.from {
                for trigger in rule.triggers {
                    assert!(seen.insert((*from, rule.to, *trigger)), "{from} → {}", rule.to);
                }
            }
        }
        for trigger in Trigger::ALL {
            assert!(seen.iter().any(|(_, _, t)| t == trigger), "{trigger}");
            assert_eq!(trigger.as_str().parse(), Ok(*trigger));
            assert_eq!(trigger.actor() == Actor::User, trigger.as_str().starts_with("user:"));
        }
    }

    #[test]
    fn a_refusal_names_both_states() {
        let refused = IllegalTransition {
            from: Status::Succeeded,
            to: Status::Running,
            trigger: Trigger::UserResume,
        };
        assert_eq!(
            refused.to_string(),
            "a task that is succeeded cannot become running by user:resume: succeeded is an end"
        );
    }
}
