//! Small integers for the words that every row repeats: less to write and to send than the words themselves.
//!
//! They are part of the schema: a code is never changed and never used again. The tables
//! `status_words` and `trigger_words` carry the words for people who look with other tools.

use chongming_core::{Status, Trigger};

/// Unfinished states lie below, ended ones from here on.
pub(crate) const FIRST_ENDED: i16 = 9;

/// The one state that the index of states leaves out: almost every task ends there, and few ask for it.
pub(crate) const SUCCEEDED: i16 = status(Status::Succeeded);

pub(crate) const fn status(status: Status) -> i16 {
    match status {
        Status::Pending => 0,
        Status::Blocked => 1,
        Status::Queued => 2,
        Status::RetryWait => 3,
        Status::Starting => 4,
        Status::Running => 5,
        Status::Pausing => 6,
        Status::Paused => 7,
        Status::Stopping => 8,
        Status::Succeeded => 9,
        Status::Failed => 10,
        Status::Stopped => 11,
        Status::Cancelled => 12,
        Status::Skipped => 13,
        Status::Lost => 14,
    }
}

pub(crate) fn status_of(code: i16) -> Option<Status> {
    Status::ALL.into_iter().find(|candidate| status(*candidate) == code)
}

pub(crate) const fn trigger(trigger: Trigger) -> i16 {
    match trigger {
        Trigger::DependenciesResolved => 0,
        Trigger::WaitingForUpstream => 1,
        Trigger::UpstreamUnsatisfied => 2,
        Trigger::FailFast => 3,
        Trigger::UserStop => 4,
        Trigger::UserCancel => 5,
        Trigger::UserPause => 6,
        Trigger::UserResume => 7,
        Trigger::Shutdown => 8,
        Trigger::TimeoutStart => 9,
        Trigger::TimeoutAttempt => 10,
        Trigger::TimeoutIdle => 11,
        Trigger::PauseReached => 12,
        Trigger::PauseUnconfirmed => 13,
        Trigger::RetryDue => 14,
        Trigger::StopConfirmed => 15,
        Trigger::TimeoutConfirmed => 16,
        Trigger::StopUnconfirmed => 17,
        Trigger::Dispatch => 18,
        Trigger::Launched => 19,
        Trigger::LaunchFailed => 20,
        Trigger::Completed => 21,
        Trigger::Failed => 22,
        Trigger::Vanished => 23,
        Trigger::Adopted => 24,
        Trigger::LeaseExpired => 25,
    }
}

pub(crate) fn trigger_of(code: i16) -> Option<Trigger> {
    Trigger::ALL.iter().copied().find(|candidate| trigger(*candidate) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ended_states_lie_above() {
        for status in Status::ALL {
            assert_eq!(status_of(super::status(status)), Some(status));
            assert_eq!(super::status(status) >= FIRST_ENDED, status.is_terminal());
        }
        for &trigger in Trigger::ALL {
            assert_eq!(trigger_of(super::trigger(trigger)), Some(trigger));
        }
    }
}
