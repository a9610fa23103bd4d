//! `pause`: suspends tasks.

use clap::Args;

use crate::args::control::ControlArgs;

/// Suspend tasks, wherever they run. They keep their slots.
#[derive(Clone, Debug, Args)]
pub struct PauseArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub control: ControlArgs,
}
