//! `history`: what happened to one task.

use clap::Args;

use crate::args::control::TaskArg;

/// Show what happened to one task, and who did it why.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Which one.
    #[command(flatten)]
    pub task: TaskArg,
}
