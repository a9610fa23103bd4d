//! What every executor must do (spec 6 and 7), clause by clause, as tests that any executor can run.
//!
//! # Writing an executor
//!
//! An [`Executor`](chongming_core::Executor) is given one attempt at a time. `launch` returns at once with a
//! carrier, to which signals go; everything that happens is reported through the launch's sink: `Launched` (or
//! `LaunchFailed`, which ends it), then signs of life, progress and pauses, then exactly one `Ended`. It draws no
//! conclusions: whether a failure is retried, or a silent body lost, is for the controller to say.
//!
//! - A body is run by [`run_body`](chongming_core::run_body) with a [`TaskContext`](chongming_core::TaskContext)
//!   made of the launch and of a [`Control`](chongming_core::Control) that gets the signals: these do the pausing,
//!   the interruption and the difference between `Completed` and `Interrupted` for you, wherever the body runs.
//! - An executor that starts processes asks [`may_begin`](chongming_core::AttemptSink::may_begin) directly before
//!   it starts one, and again when it finds that it stood still in between; `run_body` asks for what it runs.
//! - `abilities` are promises. With `hard_stop`, `Kill` ends a body that does not listen, and the end is reported
//!   when it is really gone. What even so goes on of a body that was told to end is told as `Unkillable`, never as
//!   `Interrupted`. Without, `Kill` gives the carrier up: its place is free at once, and no end is
//!   claimed before the body has returned.
//! - Never call a sink with a lock held that a signal, a launch or a drop needs.
//!
//! The author says how to get an executor, and gets one `#[test]` for each clause:
//!
//! ```
//! use std::sync::Arc;
//! use chongming_contract::executor::Fixture;
//! use chongming_core::{Executor, ThreadExecutor};
//!
//! struct Threads;
//!
//! impl Fixture for Threads {
//!     fn executor(&self) -> Arc<dyn Executor> {
//!         Arc::new(ThreadExecutor::new())
//!     }
//! }
//!
//! mod threads {
//!     use super::*;
//!     chongming_contract::executor_contract_tests!(Threads);
//! }
//!
//! // The same without a test framework:
//! let report = chongming_contract::executor::run(&Threads);
//! assert!(report.passed(), "{report}");
//! ```
//!
//! An executor that runs bodies in another process needs the suite's bodies there: [`definitions`] are all of
//! them, to be registered under their names. They talk to the suite over a socket of this machine, so they may run
//! in any process on it.
//!
//! [`CLAUSES`] lists all clauses. A clause about an ability that an executor does not claim demands what it must do
//! without.

mod attempt;
mod bodies;
mod cases;
mod clauses;
mod fixture;
mod stage;
mod threads;

pub use bodies::definitions;
pub use clauses::CLAUSES;
pub use fixture::Fixture;

use crate::report::{Report, assert_case, judge_all};
use clauses::CASES;
use stage::Stage;

/// Runs every clause, each on an executor of its own.
#[must_use]
pub fn run(fixture: &dyn Fixture) -> Report {
    judge_all(CASES, |look| look(Stage::new(fixture)))
}

/// Runs one clause by its name; panics with the breach when it does not hold. For `#[test]` functions.
///
/// Where the executor [is missing](Fixture::missing), a line on stderr says that the clause was skipped.
///
/// # Panics
/// When the clause does not hold, or there is none of this name.
pub fn assert_clause(name: &str, fixture: &dyn Fixture) {
    assert_case(CASES, name, fixture.missing(), |look| look(Stage::new(fixture)));
}
