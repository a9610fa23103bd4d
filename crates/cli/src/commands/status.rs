//! `status`: everything about one task.

use clap::Args;

use crate::args::control::TaskArg;

/// Show everything about one task.
///
/// Exit code 3 when it ended without success.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Which one.
    #[command(flatten)]
    pub task: TaskArg,
}
