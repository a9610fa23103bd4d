//! What one child has said so far, and what its end means.

use chongming_core::{AttemptEnd, Failure, FailureKind, Progress, Value, clean};

use super::lines::{Line, Lines, MAX_LINE};
use super::message::Up;
use crate::exit::Exit;

/// What the reactor has to act on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// It takes part, and does these by itself.
    Hello { stop: bool, pause: bool },
    /// A sign of life.
    Activity,
    /// How far it is.
    Progress(Progress),
    /// A line for its log.
    Log(String),
    /// It has suspended itself.
    Paused { epoch: Option<u64> },
}

/// One child's side of the conversation.
#[derive(Debug)]
pub(crate) struct Session {
    lines: Lines,
    takes_part: bool,
    result: Outcome,
    failure: Option<(Failure, WasTold)>,
    refused: bool,
}

/// Had it been told to end when it failed?
type WasTold = bool;

#[derive(Debug)]
enum Outcome {
    None,
    Valid(Value),
    Invalid(String),
}

impl Session {
    pub(crate) const fn new() -> Self {
        Self {
            lines: Lines::new(MAX_LINE),
            takes_part: false,
            result: Outcome::None,
            failure: None,
            refused: false,
        }
    }

    /// Has it said hello? Then its output is no sign of life.
    pub(crate) const fn takes_part(&self) -> bool {
        self.takes_part
    }

    /// Takes what it wrote. `told` = it has been told to end.
    pub(crate) fn hear(&mut self, bytes: &[u8], told: bool) -> Vec<Heard> {
        let mut lines = Vec::new();
        self.lines.feed(bytes, &mut |line| lines.push(line));
        lines.into_iter().filter_map(|line| self.line(line, told)).collect()
    }

    /// It will write no more.
    pub(crate) fn finish(&mut self, told: bool) -> Vec<Heard> {
        let mut last = Vec::new();
        self.lines.finish(&mut |line| last.push(line));
        last.into_iter().filter_map(|line| self.line(line, told)).collect()
    }

    fn line(&mut self, line: Line, told: bool) -> Option<Heard> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(line) => {
                return self.refuse(&line, &format!("it is longer than {MAX_LINE} bytes"));
            }
        };
        match Up::parse(&line) {
            Ok(Up::Hello { stop, pause }) => {
                self.takes_part = true;
                Some(Heard::Hello { stop, pause })
            }
            Ok(Up::Checkpoint) => Some(Heard::Activity),
            Ok(Up::Progress(progress)) => Some(Heard::Progress(progress)),
            Ok(Up::Log { level, message }) => Some(Heard::Log(format!("[{level}] {message}\n"))),
            Ok(Up::Paused { epoch }) => Some(Heard::Paused { epoch }),
            Ok(Up::Result(value)) => {
                self.result = Outcome::Valid(value);
                None
            }
            Ok(Up::Failure(failure)) => {
                self.failure = Some((failure, told));
                None
            }
            Ok(Up::Unknown) => None,
            Err(_) if line.trim_ascii().is_empty() => None,
            Err(why) => self.refuse(&line, &why),
        }
    }

    /// The first refused line is told in the log; a stream of noise is not.
    fn refuse(&mut self, line: &[u8], why: &str) -> Option<Heard> {
        if line.windows(RESULT.len()).any(|part| part == RESULT) {
            self.result = Outcome::Invalid(format!("its result was refused: {why}"));
        }
        let first = !self.refused;
        self.refused = true;
        first
            .then(|| Heard::Log(format!("[warn] a line of the task protocol was refused: {why}\n")))
    }

    /// The end of the attempt. `told` = it had been told to end; `stderr` = the tail of its errors.
    pub(crate) fn end(self, exit: Exit, told: bool, stderr: &str) -> AttemptEnd {
        match (exit, self.failure, self.result) {
            (Exit::Code(_), Some((failure, false)), _) => AttemptEnd::Failed(failure),
            (Exit::Code(_), Some((failure, true)), _) => {
                let message = format!("{}: {}", exit.describe(), failure.message);
                AttemptEnd::Interrupted { message: Some(clean(&message)) }
            }
            (Exit::Code(0), None, Outcome::Valid(value)) => AttemptEnd::Completed(value),
            (Exit::Code(0), None, Outcome::Invalid(why)) if !told => {
                AttemptEnd::Failed(Failure::new(FailureKind::ResultInvalid, why))
            }
            _ => exit.end(told, stderr),
        }
    }
}

const RESULT: &[u8] = b"\"result\"";

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said (before and after a stop), the exit, and the end.
    fn end(before: &str, after: Option<&str>, exit: Exit) -> AttemptEnd {
        let mut session = Session::new();
        session.hear(before.as_bytes(), false);
        session.hear(after.unwrap_or_default().as_bytes(), after.is_some());
        session.finish(after.is_some());
        session.end(exit, after.is_some(), "")
    }

    const ONE: &str = "{\"type\":\"result\",\"value\":1}\n";
    const TWO: &str = "{\"type\":\"result\",\"value\":2}";
    const BAD: &str = "{\"type\":\"result\",\"value\":NaN}\n";
    const FAILURE: &str = "{\"type\":\"failure\",\"message\":\"no\",\"retryable\":false}\n";

    #[test]
    fn the_end_is_what_was_said_and_how_it_exited() {
        let failed = |kind, text| AttemptEnd::Failed(Failure::new(kind, text));
        let kind = |end: AttemptEnd| match end {
            AttemptEnd::Failed(failure) => failure.kind,
            other => panic!("{other:?}"),
        };
        let ok = Exit::Code(0);
        assert_eq!(end("", None, ok), AttemptEnd::Completed(Value::Null));
        assert_eq!(end(&[ONE, TWO].concat(), None, ok), AttemptEnd::Completed(Value::Int(2)));
        assert_eq!(end(&[BAD, ONE].concat(), None, ok), AttemptEnd::Completed(Value::Int(1)));
        assert_eq!(kind(end(BAD, None, ok)), FailureKind::ResultInvalid);
        assert_eq!(kind(end(&[ONE, BAD].concat(), None, ok)), FailureKind::ResultInvalid);
        assert_eq!(kind(end(ONE, None, Exit::Signal(9))), FailureKind::Crashed);
        assert_eq!(
            end(ONE, None, Exit::Code(1)),
            failed(FailureKind::ExitCode, "exited with code 1")
        );
        for exit in [ok, Exit::Code(1)] {
            let failure = Failure::new(FailureKind::Exception, "no").permanent();
            assert_eq!(end(&[ONE, FAILURE].concat(), None, exit), AttemptEnd::Failed(failure));
        }
    }

    #[test]
    fn a_stop_is_confirmed_by_all_but_a_result_and_an_earlier_error() {
        let ok = Exit::Code(0);
        let interrupted = |end| matches!(end, AttemptEnd::Interrupted { .. });
        assert_eq!(end("", Some(ONE), ok), AttemptEnd::Completed(Value::Int(1)));
        assert!(matches!(end(FAILURE, Some(""), ok), AttemptEnd::Failed(_)));
        assert!(interrupted(end("", Some(FAILURE), ok)));
        assert!(interrupted(end("", Some(""), ok)));
        assert!(interrupted(end(ONE, Some(""), Exit::Signal(15))));
        assert!(interrupted(end(BAD, Some(""), ok)));
    }

    #[test]
    fn noise_is_survived_and_told_once() {
        let mut session = Session::new();
        assert_eq!(session.hear(b"\n \n", false), []);
        assert!(matches!(session.hear(b"\xff\n{\n", false).as_slice(), [Heard::Log(_)]));
        assert_eq!(session.hear(b"noise\n{\"type\":\"checkpoint\"}\n", false), [Heard::Activity]);
        assert_eq!(session.end(Exit::Code(0), false, ""), AttemptEnd::Completed(Value::Null));
    }
}
