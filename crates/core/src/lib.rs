//! State model, policies, scheduler and controller of chongming-task, without third-party dependencies.
//!
//! A [`Controller`] runs the tasks that are registered with it, by name. A [`store::TaskStore`] keeps what became of
//! them; without one it is kept in memory.
//!
//! ```
//! use chongming_core::{Controller, Submit, TaskContext, TaskDefinition, TaskError, Value};
//!
//! let double = TaskDefinition::new("double", |_: &TaskContext, n: i64| Ok::<i64, TaskError>(2 * n));
//! let controller = Controller::builder().register(double).build()?;
//! let outcome = controller.submit(Submit::new("double").args(21_i64))?.wait(None)?;
//! assert_eq!(*outcome.value(), Value::Int(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules stand in floors: one uses its own floor and those below it (docs/architecture.md).
#![forbid(unsafe_code)]

mod artifacts;
mod blake2b;
mod bucket;
mod control;
mod controller;
mod doctor;
mod executor;
mod failure;
mod id;
mod json;
mod linger;
pub mod machine;
mod memory_store;
mod ownership;
mod recovery;
mod retry;
pub mod scheduler;
mod snapshot;
mod status;
pub mod store;
mod task;
mod text;
mod time;
mod timeout;
mod transition;
mod value;
#[cfg(feature = "serde")]
mod value_serde;

pub use artifacts::{AttemptFiles, attempt_files, task_dir};
pub use bucket::{
    BucketSet, DEFAULT_NUM_BUCKETS, InvalidBucketSet, MAX_NUM_BUCKETS, bucket_of, buckets_for_node,
};
pub use control::{Answer, ControlClient, ControlRefusal, Sent};
pub use controller::{
    CloseMode, Closed, ConfigurationError, ControlError, Controller, ControllerBuilder,
    MAY_BEGIN_GOOD_FOR, NotAdoptable, Outcome, PersistFailure, Release, RunError, Stats, Submit,
    SubmitError, TaskRun, WaitTimedOut, host_name, resolve_num_buckets, run_task,
};
pub use doctor::{Alert, doctor, examine};
pub use executor::{
    Abilities, AttemptEnd, AttemptSink, Carrier, Executor, InlineExecutor, Launch, Report, Signal,
    Target, ThreadExecutor, UnsupportedTarget,
};
pub use failure::{Failure, FailureKind, UnknownFailureKind};
pub use id::{CommandId, IncarnationId, TaskId};
pub use json::integer_beyond_64_bits;
pub use memory_store::InMemoryStore;
pub use ownership::{Ownership, OwnershipError};
pub use recovery::{ReconcileOutcome, Reconciled, reconcile};
pub use retry::{Backoff, MAX_DELAY, RetryPolicy};
pub use scheduler::{Explanation, Limits, Siblings};
pub use snapshot::{Progress, TaskSnapshot};
pub use status::{Group, Status, StatusSet, UnknownStatus};
pub use task::{
    ACTIVITY_RESOLUTION, BlockOn, Body, BodyFuture, Control, Defaults, LogLevel, LogSink, Param,
    ProgressReport, Registry, RegistryError, TaskContext, TaskDefinition, TaskError, Upstream,
    block_on, run_body,
};
pub use text::{InvalidText, MAX_NAME_BYTES, Text, check_name, check_text, clean};
pub use time::{Clock, InvalidTimestamp, ManualClock, Moment, SystemClock, Timestamp};
pub use timeout::Timeout;
pub use transition::{
    Actor, IllegalTransition, RULES, Rule, Transition, Trigger, UnknownTrigger, is_legal,
    triggers_between,
};
pub use value::{FromValue, IntoValue, InvalidValue, MAX_DEPTH, Value};
#[cfg(feature = "serde")]
pub use value_serde::Json;

/// The README's Rust, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
