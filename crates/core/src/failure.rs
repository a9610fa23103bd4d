//! Why an attempt failed (spec 1).

use std::fmt;
use std::str::FromStr;

use crate::text::{Text, clean};

/// The kind of a failure: what the retry policy decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The task returned an error.
    Exception,
    /// The task panicked.
    Panic,
    /// It was not started in time.
    TimeoutStart,
    /// One attempt took too long.
    TimeoutAttempt,
    /// No sign of life for too long.
    TimeoutIdle,
    /// The result cannot be expressed in JSON.
    ResultInvalid,
    /// The carrier could not be started.
    LaunchFailed,
    /// A command ended with a code other than 0.
    ExitCode,
    /// A command was killed by a signal that was not ours.
    Crashed,
    /// The result is unknown.
    Lost,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Exception,
        Self::Panic,
        Self::TimeoutStart,
        Self::TimeoutAttempt,
        Self::TimeoutIdle,
        Self::ResultInvalid,
        Self::LaunchFailed,
        Self::ExitCode,
        Self::Crashed,
        Self::Lost,
    ];

    /// The word that stores and JSON use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exception => "exception",
            Self::Panic => "panic",
            Self::TimeoutStart => "timeout_start",
            Self::TimeoutAttempt => "timeout_attempt",
            Self::TimeoutIdle => "timeout_idle",
            Self::ResultInvalid => "result_invalid",
            Self::LaunchFailed => "launch_failed",
            Self::ExitCode => "exit_code",
            Self::Crashed => "crashed",
            Self::Lost => "lost",
        }
    }

    /// May a policy retry this kind at all (spec 2)?
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::TimeoutStart | Self::ResultInvalid | Self::Lost => false,
            Self::Exception
            | Self::Panic
            | Self::TimeoutAttempt
            | Self::TimeoutIdle
            | Self::LaunchFailed
            | Self::ExitCode
            | Self::Crashed => true,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no failure kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFailureKind(String);

impl fmt::Display for UnknownFailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no failure kind; the kinds are ", self.0)?;
        for (i, kind) in FailureKind::ALL.into_iter().enumerate() {
            write!(f, "{}{kind}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownFailureKind {}

impl FromStr for FailureKind {
    type Err = UnknownFailureKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| UnknownFailureKind(word.chars().take(60).collect()))
    }
}

/// What went wrong in the last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// What happened, for a person.
    pub message: Text,
    /// Describes the failure, not the attempts left: `true` when a policy may retry it.
    pub retryable: bool,
}

impl Failure {
    /// A failure whose `retryable` follows its kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl AsRef<str>) -> Self {
        Self { kind, message: clean(message.as_ref()), retryable: kind.is_retryable() }
    }

    /// The same failure, marked permanent by the task itself.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.retryable = false;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
