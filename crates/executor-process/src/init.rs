//! The parts that a program plays when it is run again by its own executor.

use std::sync::atomic::{AtomicBool, Ordering};

use chongming_core::TaskDefinition;

use crate::{guardian, serve, sys};

static IS_CALLED: AtomicBool = AtomicBool::new(false);
static HAS_DEFINITIONS: AtomicBool = AtomicBool::new(false);

/// To be called first in `main` of every program that runs external commands.
///
/// Turns the process into the guardian when it was started as one, and then never returns. In any other
/// process it only lets SIGHUP, SIGINT, SIGQUIT and SIGTERM through, which some parents leave blocked: nobody could
/// ask the program to end its tasks. A program that also runs Rust functions in processes of their own calls
/// [`init_with`] instead.
pub fn init() {
    guardian::run_if_asked();
    serve::run_if_asked(Vec::new);
    sys::unblock_ends();
    IS_CALLED.store(true, Ordering::Release);
}

/// To be called first in `main` of every program whose Rust tasks run in processes of their own, and of every
/// task module.
///
/// Turns the process into what it was started as: the guardian, or the carrier of one attempt of one of these
/// tasks, or the list of them. Then it never returns, and nothing that follows in `main` runs. In any other
/// process it notes that these tasks can be carried, and does no more than [`init`]; `definitions` is not called
/// then.
///
/// ```no_run
/// use chongming_core::{Controller, TaskContext, TaskDefinition, TaskError};
/// use chongming_executor_process::{ProcessExecutor, init_with};
/// use std::sync::Arc;
///
/// fn tasks() -> Vec<TaskDefinition> {
///     vec![TaskDefinition::new("count", |ctx: &TaskContext, up_to: u32| {
///         (0..up_to).try_for_each(|_| ctx.checkpoint())?;
///         Ok::<u32, TaskError>(up_to)
///     })]
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     init_with(tasks);
///     let executor = Arc::new(ProcessExecutor::new()?);
///     let builder = Controller::builder().executor(executor);
///     let controller = tasks().into_iter().fold(builder, |b, task| b.register(task)).build()?;
///     # let _ = controller;
///     Ok(())
/// }
/// ```
pub fn init_with<I: IntoIterator<Item = TaskDefinition>>(definitions: impl FnOnce() -> I) {
    guardian::run_if_asked();
    serve::run_if_asked(|| definitions().into_iter().collect());
    sys::unblock_ends();
    IS_CALLED.store(true, Ordering::Release);
    HAS_DEFINITIONS.store(true, Ordering::Release);
}

/// Did this program call [`init`] or [`init_with`], so that it can be its own guardian?
pub(crate) fn is_called() -> bool {
    IS_CALLED.load(Ordering::Acquire)
}

/// Did this program call [`init_with`]?
pub(crate) fn has_definitions() -> bool {
    HAS_DEFINITIONS.load(Ordering::Acquire)
}
