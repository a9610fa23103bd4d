//! One task without a controller of one's own (spec 6).

use std::fmt;
use std::sync::Arc;

use crate::controller::Controller;
use crate::controller::builder::ConfigurationError;
use crate::controller::handle::{Outcome, WaitTimedOut};
use crate::controller::submit::{Submit, SubmitError};
use crate::task::TaskDefinition;
use crate::value::IntoValue;

/// Runs one task to its end, in memory: no store to set up, no controller to keep.
///
/// ```
/// # use chongming_core::{run_task, TaskContext, TaskDefinition, TaskError, Value};
/// let hello = TaskDefinition::new("hello", |_: &TaskContext, name: String| {
///     Ok::<String, TaskError>(format!("hello {name}"))
/// });
/// assert_eq!(run_task(hello, "you")?.value().to_string(), "\"hello you\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RunError`]: the definition or its arguments are invalid.
pub fn run_task(
    definition: TaskDefinition,
    args: impl IntoValue,
) -> Result<Arc<Outcome>, RunError> {
    let submit = Submit::new(Arc::clone(&definition.name)).args(args);
    let controller = Controller::builder()
        .register(definition)
        .build()
        .map_err(|error| RunError::Configuration(Box::new(error)))?;
    let run = controller.submit(submit).map_err(RunError::Submit)?;
    run.wait(None).map_err(RunError::Wait)
}

/// Why [`run_task`] could not run a task to its end.
#[derive(Debug)]
pub enum RunError {
    /// The definition does not fit.
    Configuration(Box<ConfigurationError>),
    /// The submission does not fit.
    Submit(SubmitError),
    /// The wait was given up.
    Wait(WaitTimedOut),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(error) => error.fmt(f),
            Self::Submit(error) => error.fmt(f),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}
