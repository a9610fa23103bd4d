//! The fifteen states (spec 1): a flat list, so that a store keeps one word.

use std::fmt;
use std::str::FromStr;

/// Where a task is. What each state means is told in `docs/state-model.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Known, not yet accepted.
    Pending,
    /// Waits for upstream tasks.
    Blocked,
    /// Accepted, waits for a slot.
    Queued,
    /// Waits for its next attempt; holds no slot.
    RetryWait,
    /// Being launched; holds a slot.
    Starting,
    /// Its body runs.
    Running,
    /// Asked to pause, not there yet.
    Pausing,
    /// Suspended; keeps its slot.
    Paused,
    /// Asked to stop, not confirmed yet.
    Stopping,
    /// Ended well.
    Succeeded,
    /// Ended with a failure and no attempt left.
    Failed,
    /// A person (or a shutdown) stopped it.
    Stopped,
    /// The orchestration, or a person by `cancel`, withdrew it.
    Cancelled,
    /// Its upstream never succeeded: it was never due.
    Skipped,
    /// Its result is unknown.
    Lost,
}

/// The three groups of spec 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// No carrier, no slot.
    Waiting,
    /// On a carrier: holds a slot.
    OnCarrier,
    /// Ended; no way out.
    Terminal,
}

impl Status {
    /// All fifteen, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::Pending,
        Self::Blocked,
        Self::Queued,
        Self::RetryWait,
        Self::Starting,
        Self::Running,
        Self::Pausing,
        Self::Paused,
        Self::Stopping,
        Self::Succeeded,
        Self::Failed,
        Self::Stopped,
        Self::Cancelled,
        Self::Skipped,
        Self::Lost,
    ];

    /// The word that stores, JSON and tables use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Queued => "queued",
            Self::RetryWait => "retry_wait",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
        }
    }

    /// Which of the three groups it belongs to.
    #[must_use]
    pub const fn group(self) -> Group {
        match self {
            Self::Pending | Self::Blocked | Self::Queued | Self::RetryWait => Group::Waiting,
            Self::Starting | Self::Running | Self::Pausing | Self::Paused | Self::Stopping => {
                Group::OnCarrier
            }
            Self::Succeeded
            | Self::Failed
            | Self::Stopped
            | Self::Cancelled
            | Self::Skipped
            | Self::Lost => Group::Terminal,
        }
    }

    /// Ended: no transition leads out.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self.group(), Group::Terminal)
    }

    /// On a carrier, so it occupies a slot and its permits.
    #[must_use]
    pub const fn holds_slot(self) -> bool {
        matches!(self.group(), Group::OnCarrier)
    }

    /// Did the task end in a way that makes a pipeline fail, and a fail-fast withdraw the rest (spec 13)? A cancelled or
    /// skipped one was withdrawn itself, or never due.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Lost | Self::Stopped => true,
            Self::Succeeded
            | Self::Cancelled
            | Self::Skipped
            | Self::Pending
            | Self::Blocked
            | Self::Queued
            | Self::RetryWait
            | Self::Starting
            | Self::Running
            | Self::Pausing
            | Self::Paused
            | Self::Stopping => false,
        }
    }

    /// What recovery may hand to a new submission once the holder is gone (spec 12); the rest of the
    /// unfinished states had work in flight and become `lost`.
    #[must_use]
    pub const fn is_adoptable(self) -> bool {
        match self {
            Self::Pending | Self::Blocked | Self::Queued | Self::RetryWait | Self::Paused => true,
            Self::Starting | Self::Running | Self::Pausing | Self::Stopping => false,
            Self::Succeeded
            | Self::Failed
            | Self::Stopped
            | Self::Cancelled
            | Self::Skipped
            | Self::Lost => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is none of the fifteen states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStatus(String);

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no status; the statuses are ", self.0)?;
        for (i, status) in Status::ALL.into_iter().enumerate() {
            write!(f, "{}{status}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownStatus {}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| UnknownStatus(word.chars().take(60).collect()))
    }
}

/// A set of statuses, for queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusSet(u16);

impl StatusSet {
    /// No status.
    pub const EMPTY: Self = Self(0);

    /// All that satisfy the predicate.
    pub fn of(predicate: impl Fn(Status) -> bool) -> Self {
        Status::ALL.into_iter().filter(|s| predicate(*s)).collect()
    }

    /// Every status that is not terminal.
    #[must_use]
    pub fn unfinished() -> Self {
        Self::of(|status| !status.is_terminal())
    }

    /// Is it a member?
    #[must_use]
    pub const fn contains(self, status: Status) -> bool {
        self.0 & (1 << status as u16) != 0
    }

    /// The members, in the order of [`Status::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Status> {
        Status::ALL.into_iter().filter(move |status| self.contains(*status))
    }
}

impl FromIterator<Status> for StatusSet {
    fn from_iter<I: IntoIterator<Item = Status>>(statuses: I) -> Self {
        Self(statuses.into_iter().fold(0, |bits, status| bits | 1 << status as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_states_agree() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert!("Running".parse::<Status>().is_err());
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set: StatusSet = [Status::Queued, Status::Lost].into_iter().collect();
        assert!(set.contains(Status::Queued) && !set.contains(Status::Running));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Status::Queued, Status::Lost]);
        assert_eq!(StatusSet::unfinished().iter().count(), 9);
    }
}
