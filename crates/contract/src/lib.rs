//! What every store and every executor of chongming-task must do, clause by clause, as tests that any store and
//! executor can run.
//!
//! [`executor`] is about executors. The author of a store says how to get fresh data and connections to it, and
//! gets one `#[test]` for each clause:
//!
//! ```
//! use std::sync::Arc;
//! use chongming_contract::{Data, Fixture};
//! use chongming_core::InMemoryStore;
//! use chongming_core::store::TaskStore;
//!
//! struct InMemory;
//!
//! struct Fresh(Arc<InMemoryStore>);
//!
//! impl Fixture for InMemory {
//!     fn fresh(&self) -> Box<dyn Data> {
//!         Box::new(Fresh(Arc::new(InMemoryStore::new())))
//!     }
//! }
//!
//! impl Data for Fresh {
//!     fn connect(&self) -> Arc<dyn TaskStore> {
//!         self.0.clone()
//!     }
//!     fn outlives_close(&self) -> bool {
//!         false
//!     }
//! }
//!
//! mod in_memory {
//!     use super::*;
//!     chongming_contract::contract_tests!(InMemory);
//! }
//!
//! // The same without a test framework:
//! let report = chongming_contract::run(&InMemory);
//! assert!(report.passed(), "{report}");
//! ```
//!
//! [`CLAUSES`] lists them all. No case sleeps: where time matters it is an argument.
#![forbid(unsafe_code)]

mod breach;
mod clause;
pub mod executor;
mod report;
mod store;

pub use breach::Breach;
pub(crate) use clause::__clause_table;
pub use clause::Clause;
pub use report::{Report, Verdict};
pub use store::{CLAUSES, Data, Fixture, assert_clause, check, run};
