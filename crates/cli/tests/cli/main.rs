//! The command line seen from outside: one file per verb, and `usage` and `databases` for what all have in common.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

mod cancel;
mod completions;
mod counts;
mod databases;
mod examples;
mod explain;
mod history;
mod logs;
mod modules;
mod nodes;
mod pause;
mod pipeline;
mod prune;
mod ps;
mod reconcile;
mod report;
mod run;
mod status;
mod stop;
mod support;
mod tasks;
mod usage;
mod wait;
