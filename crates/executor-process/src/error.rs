//! Why there is no executor.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The environment variable that turns a program into a guardian, see [`crate::init()`].
pub(crate) const GUARDIAN: &str = "CHONGMING_GUARDIAN";

/// Why a process executor could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExecutorError {
    /// The program, run again as its own guardian, did not call [`init`](crate::init()).
    InitNotCalled {
        /// The program.
        program: PathBuf,
    },
    /// This process was started as a guardian but does not act as one: it must not start another.
    InsideGuardian,
    /// This process was started to serve a task but did not: it must not start others.
    InsideServer,
    /// Each of so many supervisors was started by a task of the one before: an endless chain.
    TooDeep,
    /// The guardian could not be started.
    Guardian {
        /// The program that it should run.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The system refused what the executor needs.
    System {
        /// What was refused.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for ExecutorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitNotCalled { program } => write!(
                f,
                "{} was run again as a guardian of its commands, but did not become one; call chongming_executor_process::init() first in main",
                program.display()
            ),
            Self::InsideGuardian => write!(
                f,
                "this process was started as a guardian ({} is set), but its main did not call chongming_executor_process::init() first",
                GUARDIAN
            ),
            Self::InsideServer => f.write_str(
                "this process was started to serve a task of its own program, but its main did not call chongming_executor_process::init_with first",
            ),
            Self::TooDeep => f.write_str(
                "too many supervisors, each started by a task of the one before; a task must not start its own supervisor again",
            ),
            Self::Guardian { program, source } => {
                write!(f, "cannot start {} as a guardian: {source}", program.display())
            }
            Self::System { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for ExecutorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Guardian { source, .. } | Self::System { source, .. } => Some(source),
            Self::InitNotCalled { .. }
            | Self::InsideGuardian
            | Self::InsideServer
            | Self::TooDeep => None,
        }
    }
}
