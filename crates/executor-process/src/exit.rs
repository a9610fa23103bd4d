//! How a command's leader ended, and what that means for the attempt.

use chongming_core::{AttemptEnd, Failure, FailureKind, Text, Value, clean};
use rustix::process::WaitIdStatus;

use crate::life::HELLO_LIMIT;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Somebody else waited for it, so nobody can say.
    Unknown,
}

impl Exit {
    pub(crate) fn from_status(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }

    /// For a person: `exited with code 7`.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => match signal_name(signal) {
                Some(name) => format!("killed by signal {signal} ({name})"),
                None => format!("killed by signal {signal}"),
            },
            Self::Unknown => "its exit code was taken by another part of this program".to_owned(),
        }
    }

    /// The end of the attempt. `told` = it had been told to end before; `stderr` = the tail of its errors.
    pub(crate) fn end(self, told: bool, stderr: &str) -> AttemptEnd {
        match self {
            Self::Unknown => AttemptEnd::Vanished { message: clean(&self.describe()) },
            _ if told => AttemptEnd::Interrupted { message: Some(clean(&self.describe())) },
            Self::Code(0) => AttemptEnd::Completed(Value::Null),
            Self::Code(_) => self.failed(FailureKind::ExitCode, stderr),
            Self::Signal(_) => self.failed(FailureKind::Crashed, stderr),
        }
    }

    /// Why a program that was to serve `task` never did.
    pub(crate) fn never_served(self, task: &str, stderr: &str) -> Text {
        let how = self.message(stderr);
        clean(&format!(
            "the program did not serve its task {task:?}: it must call chongming_executor_process::init_with, with its task definitions, first in main, and gets {} s to get there ({how})",
            HELLO_LIMIT.as_secs()
        ))
    }

    /// What a served task that left without a result says.
    pub(crate) fn without_result(self, stderr: &str) -> Text {
        described(&format!("{} before the task returned", self.describe()), stderr)
    }

    fn failed(self, kind: FailureKind, stderr: &str) -> AttemptEnd {
        AttemptEnd::Failed(Failure::new(kind, self.message(stderr)))
    }

    fn message(self, stderr: &str) -> Text {
        described(&self.describe(), stderr)
    }
}

fn described(what: &str, stderr: &str) -> Text {
    match stderr.trim() {
        "" => clean(what),
        stderr => clean(&format!("{what}; stderr ends: {stderr}")),
    }
}

/// The usual name of a signal on Linux.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: FailureKind, message: &str) -> AttemptEnd {
        AttemptEnd::Failed(Failure::new(kind, message))
    }

    #[test]
    fn an_exit_is_what_it_says_unless_we_asked_for_it() {
        let interrupted = |message: &str| AttemptEnd::Interrupted { message: Some(message.into()) };
        for (exit, told, stderr, end) in [
            (Exit::Code(0), false, "noise", AttemptEnd::Completed(Value::Null)),
            (Exit::Code(7), false, "", failed(FailureKind::ExitCode, "exited with code 7")),
            (
                Exit::Code(7),
                false,
                " bad\0thing\n",
                failed(FailureKind::ExitCode, "exited with code 7; stderr ends: bad\u{FFFD}thing"),
            ),
            (
                Exit::Signal(11),
                false,
                "",
                failed(FailureKind::Crashed, "killed by signal 11 (SIGSEGV)"),
            ),
            (Exit::Code(0), true, "", interrupted("exited with code 0")),
            (Exit::Signal(15), true, "x", interrupted("killed by signal 15 (SIGTERM)")),
        ] {
            assert_eq!(exit.end(told, stderr), end);
        }
        assert!(matches!(Exit::Unknown.end(false, ""), AttemptEnd::Vanished { .. }));
    }
}
