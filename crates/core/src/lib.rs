//! State model, policies, scheduler and controller of chongming-task, without third-party dependencies.
//!
//! Modules stand in floors; a module uses only floors below its own:
//!
//! | floor | modules |
//! |---|---|
//! | words | `text` `id` `linger` `time` `value` `status` `failure` |
//! | policies | `retry` `timeout` `blake2b` `bucket` `ownership` |
//! | record | `transition` `snapshot` `machine` `artifacts` |
//! | ports | `store` `task` `executor` |
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
    NotAdoptable, Outcome, PersistFailure, Release, RunError, Stats, Submit, SubmitError, TaskRun,
    WaitTimedOut, host_name, resolve_num_buckets, run_task,
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
pub use scheduler::{Explanation, Limits};
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
