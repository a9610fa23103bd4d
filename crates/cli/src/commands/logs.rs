//! `logs`: what a task wrote.

use std::num::NonZeroU32;

use clap::Args;

use crate::args::control::TaskArg;

/// Show the output of a task's attempt.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// Which one.
    #[command(flatten)]
    pub task: TaskArg,

    /// Go on showing what is added until the task ends
    #[arg(short, long)]
    pub follow: bool,

    /// The attempt [default: the latest]
    #[arg(long, value_name = "N")]
    pub attempt: Option<NonZeroU32>,
}
