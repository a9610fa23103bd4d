//! `stats`: how many tasks there are.

use clap::Args;

/// Count the tasks by status.
#[derive(Clone, Copy, Debug, Args)]
pub struct StatsArgs {}
