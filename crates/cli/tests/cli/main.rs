//! The command line seen from outside: one file per verb, and `usage` for what all have in common.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod completions;
mod support;
mod tasks;
mod usage;
