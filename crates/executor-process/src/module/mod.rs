//! Task modules: executables that are built with this library and serve their tasks by name (spec 14).

#[cfg(target_os = "linux")]
mod ask;
#[cfg(target_os = "linux")]
pub(crate) mod entry;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chongming_core::{Defaults, Param, TaskDefinition, Text};

use crate::command::Command;

/// A task that a module serves.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleTask {
    /// Its name.
    pub name: Text,
    /// Its named arguments; none = it is left to the task which ones it takes.
    pub params: Vec<Param>,
    /// What a submission gets unless it says otherwise.
    pub defaults: Defaults,
}

impl ModuleTask {
    /// A definition that runs it in a child of `program`, with what `command` says of folder, environment,
    /// grace and log: start from [`Command::serving`].
    #[must_use]
    pub fn definition(&self, command: Command) -> TaskDefinition {
        let definition = TaskDefinition::external(Text::clone(&self.name), command.into_target());
        let definition = definition.with_defaults(self.defaults.clone());
        self.params.iter().cloned().fold(definition, TaskDefinition::param)
    }
}

/// Why a module's tasks cannot be told.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModuleError {
    /// It cannot be run.
    Start {
        /// The executable.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended without telling: it is not built with this library, or does not call
    /// [`init_with`](crate::init_with) first.
    NoModule {
        /// The executable.
        program: PathBuf,
        /// How it ended, and the end of what it wrote to stderr.
        end: String,
    },
    /// It told nothing in time and was killed.
    TimedOut {
        /// The executable.
        program: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// What it told makes no sense, or is too much.
    Answer {
        /// The executable.
        program: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, source } => {
                write!(f, "the task module {} cannot be run: {source}", program.display())
            }
            Self::NoModule { program, end } => write!(
                f,
                "{} is no task module: asked for its tasks, it {end}; a module is built with chongming-task and calls init_with (or main_with) first in main",
                program.display()
            ),
            Self::TimedOut { program, limit } => write!(
                f,
                "{} is no task module, or hangs: asked for its tasks, it gave no answer within {limit:?}; a module is built with chongming-task and calls init_with (or main_with) first in main",
                program.display()
            ),
            Self::Answer { program, problem } => {
                write!(f, "the task module {} cannot be used: {problem}", program.display())
            }
        }
    }
}

impl std::error::Error for ModuleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } => Some(source),
            Self::NoModule { .. } | Self::TimedOut { .. } | Self::Answer { .. } => None,
        }
    }
}

/// Longest time that [`list`] gives a module to answer, unless said otherwise.
pub const LIST_LIMIT: Duration = Duration::from_secs(30);

/// Runs a module to ask it for its tasks, by name. It is killed with its whole group when it has not answered
/// within `limit`, in any case after its answer, and also when this program is killed meanwhile, if that has
/// called [`init`](crate::init()) or [`init_with`](crate::init_with).
///
/// # Errors
/// [`ModuleError`] says what is wrong with the executable.
#[cfg(target_os = "linux")]
pub fn list(program: &Path, limit: Duration) -> Result<Vec<ModuleTask>, ModuleError> {
    ask::list(program, limit)
}

/// Cannot ask on this platform.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn list(program: &Path, _limit: Duration) -> Result<Vec<ModuleTask>, ModuleError> {
    let source = io::Error::new(io::ErrorKind::Unsupported, "it needs Linux");
    Err(ModuleError::Start { program: program.to_owned(), source })
}
