//! The executor with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod functions;
mod guardian;
mod guardian_told;
mod hostile;
mod launching;
mod left_overs;
mod modules;
mod other_users;
mod output;
mod pausing;
mod protocol;
mod standstill;
mod stopping;
