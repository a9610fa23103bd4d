//! `stop`: ends tasks.

use clap::Args;

use crate::args::control::ControlArgs;

/// Stop tasks, wherever they run.
///
/// They end as `stopped` when that is confirmed; a command that does not end in its grace time is killed.
#[derive(Clone, Debug, Args)]
pub struct StopArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub control: ControlArgs,
}
