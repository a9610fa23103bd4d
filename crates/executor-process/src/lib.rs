//! Runs external commands for chongming-task (spec 14).
//!
//! One thread, the reactor, watches all children by epoll; a few launcher threads start them by
//! `posix_spawn`. Each child leads a process group of its own, which is held by its leader's pidfd. A
//! second process, the guardian, ends all groups when this one is killed.
//!
//! | module | subject |
//! |---|---|
//! | `sys` | the only `unsafe`: `posix_spawn`, and signals for a pinned group |
//! | `procfs` `group` `exit` | processes, their groups and their ends |
//! | `command` `program` `environment` | what is run |
//! | `log_file` `output` | what it writes |
//! | `protocol` | the conversation with children that know us |
//! | `child` | one child's life, a pure state machine |
//! | `mailbox` `reactor` `launcher` | the threads |
//! | `guardian` | survives the supervisor by a moment |
//! | `executor` | the port's implementation |
//!
//! ```no_run
//! use chongming_executor_process::{Command, ProcessExecutor, init};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     init(); // first: the guardian is this program, run again
//!     let executor = ProcessExecutor::new()?;
//!     let target = Command::new(["python3", "sync.py"]).into_target();
//!     # let _ = (executor, target);
//!     Ok(())
//! }
//! ```
#![deny(unsafe_code)]

mod child;
mod command;
mod environment;
mod error;
mod executor;
mod exit;
mod group;
mod guardian;
mod launcher;
mod log_file;
mod mailbox;
mod output;
mod procfs;
mod program;
mod protocol;
mod reactor;
mod sys;

pub use command::{Command, CommandTemplate, DEFAULT_MAX_LOG_BYTES};
pub use error::ExecutorError;
pub use executor::{ProcessExecutor, ProcessExecutorBuilder};
pub use guardian::init;
pub use output::Echo;
