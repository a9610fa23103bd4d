//! Core of chongming-task.
#![forbid(unsafe_code)]
