//! What a task's body returns when it does not return a value.

use std::fmt;

use crate::failure::{Failure, FailureKind};
use crate::value::InvalidValue;

/// Why a body gave up.
///
/// Any error converts into it by `?`, so a body rarely names it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskError(pub(crate) Cause);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    /// A checkpoint said that the task is to stop.
    Interrupted(String),
    /// It failed.
    Failed(Failure),
}

impl TaskError {
    /// A failure that may be retried.
    pub fn new(message: impl AsRef<str>) -> Self {
        Self(Cause::Failed(Failure::new(FailureKind::Exception, message)))
    }

    /// A failure that no policy retries.
    pub fn permanent(message: impl AsRef<str>) -> Self {
        Self(Cause::Failed(Failure::new(FailureKind::Exception, message).permanent()))
    }

    /// What a checkpoint returns once the task is to stop.
    pub(crate) fn interrupted(reason: &str) -> Self {
        Self(Cause::Interrupted(reason.to_owned()))
    }

    pub(crate) fn result_invalid(error: &InvalidValue) -> Self {
        let message = format!("the result cannot be expressed in JSON: {error}");
        Self(Cause::Failed(Failure::new(FailureKind::ResultInvalid, message)))
    }

    pub(crate) fn arguments_invalid(error: &InvalidValue) -> Self {
        Self::permanent(format!("the arguments do not fit the task: {error}"))
    }

    /// Did a checkpoint end it?
    #[must_use]
    pub const fn is_interruption(&self) -> bool {
        matches!(self.0, Cause::Interrupted(_))
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Interrupted(reason) if reason.is_empty() => f.write_str("interrupted"),
            Cause::Interrupted(reason) => write!(f, "interrupted: {reason}"),
            Cause::Failed(failure) => f.write_str(&failure.message),
        }
    }
}

// `TaskError` is no `std::error::Error` itself: that is what makes this conversion from any error possible.
impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }
}
