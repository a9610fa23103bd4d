//! What is said of an end besides how it came.

use chongming_core::{AttemptEnd, Report, clean};
use rustix::process::RawPid;

/// The end, with this remark: what was wrong with its log, or what may be left. A success stays what it is.
pub(crate) fn with(end: Report, remark: Option<&str>) -> Report {
    let Some(remark) = remark else { return end };
    let and = |message: &str| clean(&format!("{message} ({remark})"));
    match end {
        Report::LaunchFailed(mut failure) => {
            failure.message = and(&failure.message);
            Report::LaunchFailed(failure)
        }
        Report::Ended(end) => Report::Ended(match end {
            AttemptEnd::Completed(value) => AttemptEnd::Completed(value),
            AttemptEnd::Failed(mut failure) => {
                failure.message = and(&failure.message);
                AttemptEnd::Failed(failure)
            }
            AttemptEnd::Interrupted { message } => {
                let message = message.map_or_else(|| clean(remark), |message| and(&message));
                AttemptEnd::Interrupted { message: Some(message) }
            }
            AttemptEnd::Unkillable { message } => AttemptEnd::Unkillable { message: and(&message) },
            AttemptEnd::Vanished { message } => AttemptEnd::Vanished { message: and(&message) },
        }),
        Report::Launched | Report::Paused { .. } | Report::Activity | Report::Progress(_) => end,
    }
}

/// The end of what something is left of that we cannot end: what was told to end has not, and what failed is not to
/// be tried again beside it.
pub(crate) fn with_survivors(end: Report, remark: Option<&str>) -> Report {
    match (end, remark) {
        (Report::Ended(AttemptEnd::Interrupted { message }), Some(remark)) => {
            let message = message.map_or_else(|| remark.into(), |m| format!("{m}, but {remark}"));
            Report::Ended(AttemptEnd::Unkillable { message: clean(&message) })
        }
        (Report::LaunchFailed(failure), Some(_)) => {
            with(Report::LaunchFailed(failure.permanent()), remark)
        }
        (Report::Ended(AttemptEnd::Failed(failure)), Some(_)) => {
            with(Report::Ended(AttemptEnd::Failed(failure.permanent())), remark)
        }
        (end, remark) => with(end, remark),
    }
}

/// The end of an attempt whose leader cannot be ended.
pub(crate) fn unkillable(leader: RawPid) -> Report {
    Report::Ended(AttemptEnd::Unkillable { message: clean(&goes_on(&[leader])) })
}

/// What to say of processes whose origin nobody knows.
pub(crate) fn unknown(processes: &[RawPid]) -> Option<String> {
    let left = "what has left its group and cleared its environment may go on: of this or another task is process";
    (!processes.is_empty()).then(|| format!("{left} {}", list(processes)))
}

/// What to say of processes that nobody but another user may end.
pub(crate) fn out_of_reach(processes: &[RawPid]) -> Option<String> {
    (!processes.is_empty()).then(|| goes_on(processes))
}

fn goes_on(processes: &[RawPid]) -> String {
    format!("what runs as another user could not be ended and goes on: process {}", list(processes))
}

fn list(processes: &[RawPid]) -> String {
    processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{Failure, FailureKind, Text, Value};

    #[test]
    fn what_was_told_to_end_and_partly_goes_on_has_not_ended() {
        let left = out_of_reach(&[7, 8]);
        let seen = |end| match with_survivors(Report::Ended(end), left.as_deref()) {
            Report::Ended(end) => end,
            other => panic!("{other:?}"),
        };
        let text = "what runs as another user could not be ended and goes on: process 7, 8";
        let told = |message: &str| AttemptEnd::Interrupted { message: Some(message.into()) };
        let both = clean(&format!("exited with code 0, but {text}"));
        assert_eq!(seen(told("exited with code 0")), AttemptEnd::Unkillable { message: both });
        let alone = AttemptEnd::Unkillable { message: text.into() };
        assert_eq!(seen(AttemptEnd::Interrupted { message: None }), alone);
        // Of itself it ended as it says, but for a second try beside what goes on.
        let completed = AttemptEnd::Completed(Value::Int(1));
        assert_eq!(seen(completed.clone()), completed);
        let failed = |text: &str| AttemptEnd::Failed(Failure::new(FailureKind::ExitCode, text));
        let failure = Failure::new(FailureKind::ExitCode, format!("no ({text})")).permanent();
        assert_eq!(seen(failed("no")), AttemptEnd::Failed(failure));
        let refused = |text: &str| Failure::new(FailureKind::LaunchFailed, text);
        assert_eq!(
            with_survivors(Report::LaunchFailed(refused("no")), left.as_deref()),
            Report::LaunchFailed(refused(&format!("no ({text})")).permanent())
        );
        for end in [Report::Ended(told("x")), Report::Ended(failed("x"))] {
            assert_eq!(with_survivors(end.clone(), out_of_reach(&[]).as_deref()), end);
        }
    }

    #[test]
    fn every_end_that_says_something_takes_a_remark() {
        let failure = |text: &str| Failure::new(FailureKind::LaunchFailed, text);
        let (a, b): (Text, Text) = ("a".into(), "a (b)".into());
        for (end, remarked) in [
            (Report::LaunchFailed(failure("a")), Report::LaunchFailed(failure("a (b)"))),
            (
                Report::Ended(AttemptEnd::Failed(failure("a"))),
                Report::Ended(AttemptEnd::Failed(failure("a (b)"))),
            ),
            (
                Report::Ended(AttemptEnd::Vanished { message: a.clone() }),
                Report::Ended(AttemptEnd::Vanished { message: b.clone() }),
            ),
            (
                Report::Ended(AttemptEnd::Interrupted { message: Some(a) }),
                Report::Ended(AttemptEnd::Interrupted { message: Some(b) }),
            ),
        ] {
            assert_eq!(with(end, Some("b")), remarked);
        }
    }
}
