//! The command line of chongming-task.
#![forbid(unsafe_code)]

pub mod database;
pub mod duration;
pub mod error;
pub mod exit_codes;
pub mod nearest;
pub mod output;
