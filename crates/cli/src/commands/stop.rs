//! `stop`: ends tasks.

use chongming_core::store::CommandKind;
use clap::Args;

use super::control;
use crate::args::control::ControlArgs;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::output::console::Console;

/// Stop tasks, wherever they run.
///
/// They end as `stopped` when that is confirmed; a command that does not end in its grace time is killed.
#[derive(Clone, Debug, Args)]
pub(crate) struct StopArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Asks for it.
pub(super) fn execute(
    args: &StopArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    control::execute(CommandKind::Stop, &args.control, settings, console)
}
