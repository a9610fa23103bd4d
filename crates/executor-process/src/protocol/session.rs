//! What one child has said so far, and what its end means.

use chongming_core::{AttemptEnd, Failure, FailureKind, Progress, Report, Value, clean};

use super::VERSION;
use super::lines::{Line, Lines, MAX_LINE};
use super::up::Up;
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
    /// It speaks another version, so there is no talking to it.
    Foreign,
}

/// Whom we talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Partner {
    /// Any command; it may know nothing of us.
    Command,
    /// A program that is to serve the task of this name, and to say hello before anything else.
    Server { task: String },
}

/// One child's side of the conversation.
#[derive(Debug)]
pub(crate) struct Session {
    partner: Partner,
    lines: Lines,
    takes_part: bool,
    result: Outcome,
    failure: Option<(Failure, WasTold)>,
    /// Why there is no talking to it.
    foreign: Option<String>,
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
    pub(crate) const fn new(partner: Partner) -> Self {
        Self {
            partner,
            lines: Lines::new(MAX_LINE),
            takes_part: false,
            result: Outcome::None,
            failure: None,
            foreign: None,
            refused: false,
        }
    }

    /// Is it to serve a task, and has not said hello?
    pub(crate) const fn is_awaited(&self) -> bool {
        match self.partner {
            Partner::Command => false,
            Partner::Server { .. } => !self.takes_part,
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
        if self.foreign.is_some() {
            return None;
        }
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(line) => {
                return self.refuse(&line, &format!("it is longer than {MAX_LINE} bytes"), told);
            }
        };
        match Up::parse(&line) {
            Ok(Up::Hello { protocol: Some(VERSION), stop, pause }) => {
                self.takes_part = true;
                Some(Heard::Hello { stop, pause })
            }
            Ok(Up::Hello { protocol, .. }) => {
                let theirs = protocol.map_or_else(|| "no version".to_owned(), |n| n.to_string());
                self.foreign = Some(format!(
                    "its hello names {theirs} of the task protocol, but this supervisor speaks {VERSION}; build both with versions of the library that fit"
                ));
                Some(Heard::Foreign)
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
            Err(why) => self.refuse(&line, &why, told),
        }
    }

    /// The first refused line is told in the log; a stream of noise is not.
    /// What decides how the attempt ends is not survived: nobody may take a failure for a success because of how it
    /// was told.
    fn refuse(&mut self, line: &[u8], why: &str, told: bool) -> Option<Heard> {
        let names = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
        if names(br#""result""#) {
            self.result = Outcome::Invalid(format!("its result was refused: {why}"));
        }
        if names(br#""failure""#) && self.failure.is_none() {
            let message = format!("it said that it failed, in a line that was refused: {why}");
            self.failure = Some((Failure::new(FailureKind::Exception, message), told));
        }
        if names(br#""hello""#) && names(br#""protocol""#) && !self.takes_part {
            self.foreign = Some(format!(
                "its hello was refused: {why}; of the task protocol this supervisor speaks {VERSION}"
            ));
            return Some(Heard::Foreign);
        }
        let first = !self.refused;
        self.refused = true;
        first
            .then(|| Heard::Log(format!("[warn] a line of the task protocol was refused: {why}\n")))
    }

    /// The end of the attempt. `told` = it had been told to end; `stderr` = the tail of its errors.
    ///
    /// What it said decides when it exited by itself, with whatever code: a failure, then a refused result.
    /// A valid result counts with exit 0 only. After a signal nothing that it said counts.
    pub(crate) fn end(self, exit: Exit, told: bool, stderr: &str) -> Report {
        if !told {
            if let Some(why) = &self.foreign {
                let failure = Failure::new(FailureKind::LaunchFailed, why).permanent();
                return match self.is_awaited() {
                    true => Report::LaunchFailed(failure),
                    false => Report::Ended(AttemptEnd::Failed(failure)),
                };
            }
            if let (Partner::Server { task }, true) = (&self.partner, self.is_awaited()) {
                let why = match self.failure {
                    Some((failure, _)) => failure.message.to_string(),
                    None => exit.never_served(task, stderr).to_string(),
                };
                return Report::LaunchFailed(Failure::new(FailureKind::LaunchFailed, why));
            }
        }
        let serves = matches!(self.partner, Partner::Server { .. });
        Report::Ended(match (exit, self.failure, self.result) {
            (Exit::Code(_), Some((failure, false)), _) => AttemptEnd::Failed(failure),
            (Exit::Code(_), Some((failure, true)), _) => {
                let message = match serves {
                    true => failure.message.to_string(),
                    false => format!("{}: {}", exit.describe(), failure.message),
                };
                AttemptEnd::Interrupted { message: Some(clean(&message)) }
            }
            (Exit::Code(0), None, Outcome::Valid(value)) => AttemptEnd::Completed(value),
            (Exit::Code(_), None, Outcome::Invalid(why)) if !told => {
                AttemptEnd::Failed(Failure::new(FailureKind::ResultInvalid, why))
            }
            // The function took the stop, and the program left in order.
            (Exit::Code(0), None, Outcome::None) if serves && told => {
                AttemptEnd::Interrupted { message: None }
            }
            (Exit::Code(_), None, Outcome::None) if serves && !told => {
                AttemptEnd::Failed(Failure::new(FailureKind::ExitCode, exit.without_result(stderr)))
            }
            _ => exit.end(told, stderr),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said (before and after a stop), the exit, and the end.
    fn end(before: &str, after: Option<&str>, exit: Exit) -> AttemptEnd {
        match end_of(Partner::Command, before, after, exit) {
            Report::Ended(end) => end,
            other => panic!("{other:?}"),
        }
    }

    fn end_of(partner: Partner, before: &str, after: Option<&str>, exit: Exit) -> Report {
        let mut session = Session::new(partner);
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
        assert_eq!(kind(end(BAD, None, Exit::Code(1))), FailureKind::ResultInvalid);
        assert_eq!(kind(end(BAD, None, Exit::Signal(9))), FailureKind::Crashed);
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
    fn a_failure_counts_however_it_was_told() {
        let lines: [&[u8]; 3] = [
            b"{\"type\":\"failure\",\"message\":\"caf\xe9 is closed\"}\n",
            b"{\"type\":\"failure\",\"message\":\"no\",\"retryable\":\"no\"}\n",
            b"{\"type\":\"failure\",\"message\":5}\n",
        ];
        for line in lines {
            let mut session = Session::new(Partner::Command);
            session.hear(ONE.as_bytes(), false);
            session.hear(line, false);
            let end = session.end(Exit::Code(0), false, "");
            let Report::Ended(AttemptEnd::Failed(failure)) = end else { panic!("{end:?}") };
            assert_eq!(failure.kind, FailureKind::Exception);
            assert!(failure.message.contains("refused"), "{}", failure.message);
        }
        let refused = "{\"type\":\"failure\",\"message\":5}\n";
        let failure = Failure::new(FailureKind::Exception, "no").permanent();
        let said = [refused, FAILURE].concat();
        assert_eq!(end(&said, None, Exit::Code(0)), AttemptEnd::Failed(failure));
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
        let mut session = Session::new(Partner::Command);
        assert_eq!(session.hear(b"\n \n", false), []);
        assert!(matches!(session.hear(b"\xff\n{\n", false).as_slice(), [Heard::Log(_)]));
        assert_eq!(session.hear(b"noise\n{\"type\":\"checkpoint\"}\n", false), [Heard::Activity]);
        let end = Report::Ended(AttemptEnd::Completed(Value::Null));
        assert_eq!(session.end(Exit::Code(0), false, ""), end);
    }

    #[test]
    fn a_foreign_version_is_a_failure_whatever_follows() {
        for hello in [
            "{\"type\":\"hello\",\"protocol\":2}\n",
            "{\"type\":\"hello\",\"protocol\":0}\n",
            "{\"type\":\"hello\"}\n",
            "{\"type\":\"hello\",\"protocol\":\"2\"}\n",
            "{\"type\":\"hello\",\"protocol\":-1}\n",
            "{\"type\":\"hello\",\"protocol\":1,\"handles\":\"stop\"}\n",
        ] {
            let mut session = Session::new(Partner::Command);
            let said = [hello, HELLO, ONE].concat();
            assert_eq!(session.hear(said.as_bytes(), false), [Heard::Foreign]);
            let Report::Ended(AttemptEnd::Failed(failure)) =
                session.end(Exit::Signal(15), false, "")
            else {
                panic!("a failure")
            };
            assert_eq!((failure.kind, failure.retryable), (FailureKind::LaunchFailed, false));
            assert!(failure.message.contains("speaks 1"), "{}", failure.message);
            let end = end_of(server(), hello, None, Exit::Code(0));
            assert!(matches!(end, Report::LaunchFailed(_)), "{end:?}");
        }
    }

    fn server() -> Partner {
        Partner::Server { task: "count".to_owned() }
    }

    const HELLO: &str = "{\"type\":\"hello\",\"protocol\":1}\n";

    #[test]
    fn a_program_that_does_not_serve_never_launched() {
        let ok = Exit::Code(0);
        let problem = |end| match end {
            Report::LaunchFailed(failure) => failure.message.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(problem(end_of(server(), "", None, ok)).contains("init_with"));
        assert!(problem(end_of(server(), ONE, None, Exit::Signal(9))).contains("init_with"));
        assert_eq!(problem(end_of(server(), FAILURE, None, ok)), "no");
        let told = end_of(server(), "", Some(""), Exit::Signal(15));
        assert!(matches!(told, Report::Ended(AttemptEnd::Interrupted { .. })));
    }

    #[test]
    fn a_served_function_ends_only_by_its_result() {
        let ok = Exit::Code(0);
        let ended = |before: &str, after, exit| match end_of(
            server(),
            &[HELLO, before].concat(),
            after,
            exit,
        ) {
            Report::Ended(end) => end,
            other => panic!("{other:?}"),
        };
        assert_eq!(ended(ONE, None, ok), AttemptEnd::Completed(Value::Int(1)));
        let AttemptEnd::Failed(failure) = ended("", None, ok) else { panic!("a failure") };
        assert_eq!(failure.kind, FailureKind::ExitCode);
        assert_eq!(&*failure.message, "exited with code 0 before the task returned");
        assert_eq!(ended("", Some(""), ok), AttemptEnd::Interrupted { message: None });
        let interrupted = AttemptEnd::Interrupted { message: Some("no".into()) };
        assert_eq!(ended("", Some(FAILURE), Exit::Code(1)), interrupted);
    }
}
