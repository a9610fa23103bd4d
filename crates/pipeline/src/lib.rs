//! Pipelines: tasks that wait for one another.
//!
//! A [`Pipeline`] is nodes with dependencies. Started on a controller, all its nodes are real tasks at once;
//! those that wait are `blocked` and hold no slot. What happens when is decided by [`decide`], which is pure;
//! a thread of each run carries it out. The structure lives in memory: after a crash, `reconcile` tells the
//! truth about the nodes, and nothing goes on by itself.
//!
//! ```
//! # use chongming_core::{Controller, TaskContext, TaskDefinition, TaskError, Value};
//! use chongming_pipeline::{Node, Pipeline};
//!
//! let controller = Controller::builder()
//!     .register(TaskDefinition::new("fetch", |_: &TaskContext, ()| Ok::<i64, TaskError>(21)))
//!     .register(TaskDefinition::new("double", |ctx: &TaskContext, ()| {
//!         Ok::<i64, TaskError>(2 * ctx.input::<i64>("fetch")?)
//!     }))
//!     .build()?;
//! let run = Pipeline::new("nightly")
//!     .node(Node::new("fetch", "fetch"))
//!     .node(Node::new("double", "double").after("fetch"))
//!     .start(&controller)?;
//! let outcome = run.wait(None)?;
//! assert!(outcome.ok());
//! assert_eq!(*outcome.node("double").unwrap().outcome.value(), Value::Int(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
pub mod decide;
mod join;
mod mistake;
mod outcome;
mod pipeline;
mod run;
mod runner;

pub use join::{Aggregation, InvalidJoin, Join, UnknownAggregation};
pub use mistake::{InvalidPipeline, Mistake, StartError};
pub use outcome::{NodeOutcome, PipelineOutcome, PipelineStatus};
pub use pipeline::{Node, Pipeline};
pub use run::PipelineRun;

/// The programs of the handbook's page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/pipelines.md")]
struct Handbook;
