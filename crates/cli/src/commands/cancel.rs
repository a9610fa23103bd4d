//! `cancel`: withdraws tasks.

use chongming_core::store::CommandKind;
use clap::Args;

use super::control;
use crate::args::control::ControlArgs;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::output::console::Console;

/// Withdraw tasks: they end as `cancelled`, which no pipeline takes for a failure.
#[derive(Clone, Debug, Args)]
pub(crate) struct CancelArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Asks for it.
pub(super) fn execute(
    args: &CancelArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    control::execute(CommandKind::Cancel, &args.control, settings, console)
}
