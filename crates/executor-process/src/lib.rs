//! Runs external commands, and Rust functions in processes of their own, for chongming-task (spec 14).
//!
//! One thread, the reactor, watches all children by epoll; a few launcher threads start them by
//! `posix_spawn`. Each child leads a process group of its own, which is held by its leader's pidfd. A
//! second process, the guardian, ends all groups when this one is killed.
//!
//! | module | subject |
//! |---|---|
//! | `sys` | the only `unsafe`: `posix_spawn`, and signals for a pinned group |
//! | `procfs` `group` `orphans` `survivors` `exit` `remark` | processes, their groups, what leaves those, and their ends |
//! | `command` `program` `environment` | what is run |
//! | `log_file` `output` | what it writes |
//! | `protocol` | the conversation with children that know us |
//! | `serve` | the other side of it, in a child that is this program |
//! | `module` | executables that serve their tasks by name |
//! | `life` | one child's life, a pure state machine |
//! | `mailbox` `source` `reactor` `child` `gate` `launcher` | the threads, and what they have of a child |
//! | `question` | whether a child may begin, though we may have stood still |
//! | `guardian` | survives the supervisor by a moment |
//! | `executor` | the port's implementation |
//!
//! It needs Linux; elsewhere there is no executor, and making one says so.
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

mod command;
mod error;
pub mod module;

// What only Linux has: pidfds, epoll, /proc.
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod executor;
#[cfg(target_os = "linux")]
mod exit;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod life;
#[cfg(target_os = "linux")]
mod log_file;
#[cfg(target_os = "linux")]
mod mailbox;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod question;
#[cfg(target_os = "linux")]
mod reactor;
#[cfg(target_os = "linux")]
mod remark;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod source;
#[cfg(target_os = "linux")]
mod survivors;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{ProcessExecutor, ProcessExecutorBuilder, init, init_with};

#[cfg(target_os = "linux")]
pub use executor::{ProcessExecutor, ProcessExecutorBuilder};
#[cfg(target_os = "linux")]
pub use init::{init, init_with};

pub use command::{
    Command, CommandTemplate, DEFAULT_MAX_LOG_BYTES, MIN_MAX_LOG_BYTES, RESERVED_VARIABLES,
};
pub use error::ExecutorError;
#[cfg(target_os = "linux")]
pub use protocol::MAX_LINE;
#[cfg(target_os = "linux")]
pub use sys::was_stdout_closed;

/// Gets a copy of what the commands write. Must not block for long.
pub type Echo = std::sync::Arc<dyn Fn(&[u8]) + Send + Sync>;
