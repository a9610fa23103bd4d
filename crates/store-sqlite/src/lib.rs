//! The SQLite store of chongming-task: one file, several processes, group commit.
//!
//! One connection writes, in immediate transactions of prepared statements; others read beside it (WAL).
//! Processes that share the file wait for each other up to a limit, so that nobody ever meets
//! "database is locked" for a moment's contention. See [`SqliteStore`].
//!
//! ```
//! use std::sync::Arc;
//! use chongming_core::{Controller, Submit, TaskContext, TaskDefinition, TaskError};
//! use chongming_store_sqlite::{Options, SqliteStore};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("tasks.db");
//! let store = SqliteStore::open(&path, Options::default())?;
//! let controller = Controller::builder()
//!     .store(Arc::new(store))
//!     .register(TaskDefinition::new("nothing", |_: &TaskContext, ()| Ok::<(), TaskError>(())))
//!     .build()?;
//! assert!(controller.submit(Submit::new("nothing"))?.wait(None)?.ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `file` | what lies at a path, found out without touching it |
//! | `connection` | opening connections, waiting for locks |
//! | `schema` | tables, indexes and their versions |
//! | `write` `query` `commands` `nodes` `prune` | the statements, by subject |
//! | `codes` `row` | words and values as they stand in the columns |
//! | `doorbell` | waking a holder in another process |
//! | `error` | every driver error becomes a store error here |
#![forbid(unsafe_code)]

mod codes;
mod commands;
mod connection;
mod doorbell;
mod error;
mod file;
mod nodes;
mod options;
mod prune;
mod query;
mod row;
mod schema;
mod store;
mod write;

pub use options::{Options, Synchronous};
pub use store::SqliteStore;
