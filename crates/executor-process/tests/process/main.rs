//! The executor with real processes.

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod guardian;
mod launching;
mod left_overs;
mod output;
mod pausing;
mod stopping;
