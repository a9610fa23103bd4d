//! The Postgres store of chongming-task: one server for many nodes on many machines, group commit.
//!
//! A batch is one statement with arrays for its columns, whatever its size: one round trip, one
//! transaction. Leases are judged by the server's clock. See [`PostgresStore`].
//!
//! ```no_run
//! use std::sync::Arc;
//! use chongming_core::Controller;
//! use chongming_store_postgres::{Options, PostgresStore};
//!
//! let store = PostgresStore::connect("postgresql://user@host/database", Options::default())?;
//! let controller = Controller::builder().store(Arc::new(store)).build()?;
//! # let _ = controller;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `dsn` | what is at the other end, read from a connection string |
//! | `tls` `stream` | certificates; a server that falls silent is given up |
//! | `connection` | connecting, prepared statements, transactions, the pool's questions |
//! | `schema` | tables, indexes and their versions |
//! | `write` `batch` `statement` `guard` | batches: rounds, columns, the one statement, lease guards |
//! | `query` `commands` `nodes` `prune` | the other statements, by subject |
//! | `codes` `row` | words and values as they stand in the columns |
//! | `doorbell` | waking a holder on another machine |
//! | `error` | every driver error becomes a store error here |
//!
//! # Silent servers
//!
//! Over TCP a server that does not answer is given up, whatever the reason. Over a socket of the same machine
//! a server that is stopped, but not ended, is waited for.
//!
//! # Poolers
//!
//! PgBouncer works in session and in transaction mode, whatever its `max_prepared_statements`. It is
//! recognised at connecting (it never hands on a setting of ours), and then nothing counts on a session: each
//! statement is sent whole, without a name, no setting is changed, and no one listens. That costs a planning
//! for each statement, the server's own limits (`statement_timeout`) instead of ours, and the doorbell:
//! commands arrive by polling. Statement mode (`pool_mode = statement`) refuses transactions and cannot be
//! used. A pooler of another make that hands on all settings and yet gives each transaction another session is
//! not recognised; where it loses a prepared statement, the error says what to do.
#![forbid(unsafe_code)]

mod batch;
mod codes;
mod commands;
mod connection;
mod doorbell;
mod dsn;
mod error;
mod guard;
mod nodes;
mod options;
mod prune;
mod query;
mod row;
mod schema;
mod statement;
mod store;
mod stream;
mod tls;
mod write;

pub use options::Options;
pub use store::PostgresStore;
