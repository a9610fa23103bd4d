//! Writing a task (spec 5): definition, body, context, and the token behind a checkpoint.

mod body;
mod context;
mod control;
mod definition;
mod error;
mod registry;

pub use body::{BlockOn, Body, BodyFuture, block_on, run_body};
pub use context::{ACTIVITY_RESOLUTION, LogLevel, LogSink, ProgressReport, TaskContext, Upstream};
pub use control::Control;
pub use definition::{Defaults, Param, TaskDefinition};
pub use error::TaskError;
pub use registry::{Registry, RegistryError};
