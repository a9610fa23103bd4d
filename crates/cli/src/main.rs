//! The `chongming-task` program.
#![forbid(unsafe_code)]

fn main() {}
