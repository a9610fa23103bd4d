//! `pause`: suspends tasks.

use chongming_core::store::CommandKind;
use clap::Args;

use super::control;
use crate::args::control::ControlArgs;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::output::console::Console;

/// Suspend tasks, wherever they run. They keep their slots.
#[derive(Clone, Debug, Args)]
pub(crate) struct PauseArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Asks for it.
pub(super) fn execute(
    args: &PauseArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    control::execute(CommandKind::Pause, &args.control, settings, console)
}
