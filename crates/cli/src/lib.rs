//! The command line of chongming-task.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod database;
pub mod duration;
pub mod error;
pub mod exit_codes;
pub mod manifest;
pub mod nearest;
pub mod output;
