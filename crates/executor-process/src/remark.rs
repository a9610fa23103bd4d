//! What is said of an end besides how it came.

use chongming_core::{AttemptEnd, Report, clean};
use rustix::process::RawPid;

/// The end, with this remark: what was wrong with its log, or what may be left. A success stays what it is.
pub(crate) fn with(end: Report, remark: Option<&str>) -> Report {
    let Some(remark) = remark else { return end };
    match end {
        Report::Ended(AttemptEnd::Failed(mut failure)) => {
            failure.message = clean(&format!("{} ({remark})", failure.message));
            Report::Ended(AttemptEnd::Failed(failure))
        }
        Report::Ended(AttemptEnd::Interrupted { message }) => {
            let message = message.map_or_else(|| remark.into(), |m| format!("{m} ({remark})"));
            Report::Ended(AttemptEnd::Interrupted { message: Some(clean(&message)) })
        }
        other => other,
    }
}

/// The end of what something is left of that we cannot end: if that was told to end, it has not.
pub(crate) fn with_survivors(end: Report, remark: Option<&str>) -> Report {
    match (end, remark) {
        (Report::Ended(AttemptEnd::Interrupted { message }), Some(remark)) => {
            let message = message.map_or_else(|| remark.into(), |m| format!("{m}, but {remark}"));
            Report::Ended(AttemptEnd::Unkillable { message: clean(&message) })
        }
        (end, remark) => with(end, remark),
    }
}

/// What to say of processes whose origin nobody knows.
pub(crate) fn unknown(processes: &[RawPid]) -> Option<String> {
    let left = "what has left its group and cleared its environment may go on: of this or another task is process";
    (!processes.is_empty()).then(|| format!("{left} {}", list(processes)))
}

/// What to say of processes that nobody but another user may end.
pub(crate) fn out_of_reach(processes: &[RawPid]) -> Option<String> {
    let left = "what runs as another user could not be ended and goes on: process";
    (!processes.is_empty()).then(|| format!("{left} {}", list(processes)))
}

fn list(processes: &[RawPid]) -> String {
    processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{Failure, FailureKind, Value};

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
        // Of itself it ended as it says.
        let completed = AttemptEnd::Completed(Value::Int(1));
        assert_eq!(seen(completed.clone()), completed);
        let failed = |text: &str| AttemptEnd::Failed(Failure::new(FailureKind::ExitCode, text));
        assert_eq!(seen(failed("no")), failed(&format!("no ({text})")));
        assert_eq!(
            with_survivors(Report::Ended(told("x")), out_of_reach(&[]).as_deref()),
            Report::Ended(told("x"))
        );
    }
}
