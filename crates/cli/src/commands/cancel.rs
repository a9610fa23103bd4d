//! `cancel`: withdraws tasks.

use clap::Args;

use crate::args::control::ControlArgs;

/// Withdraw tasks: they end as `cancelled`, which no pipeline takes for a failure.
#[derive(Clone, Debug, Args)]
pub struct CancelArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub control: ControlArgs,
}
