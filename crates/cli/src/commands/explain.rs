//! `explain`: why a task is where it is.

use clap::Args;

use crate::args::control::TaskArg;

/// Say why a task is where it is: what it waits for, and who occupies that.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Which one.
    #[command(flatten)]
    pub task: TaskArg,
}
