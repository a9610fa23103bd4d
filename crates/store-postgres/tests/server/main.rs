//! What only a real server can show; see `schema` for how one is found.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod doorbell;
mod faults;
mod opening;
mod pgbouncer;
mod pooler;
mod restarts;
mod roles;
mod schema;
mod silence;
mod support;
mod tls;
