//! `resume`: continues paused tasks.

use chongming_core::store::CommandKind;
use clap::Args;

use super::control;
use crate::args::control::ControlArgs;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::output::console::Console;

/// Continue paused tasks.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Asks for it.
pub(super) fn execute(
    args: &ResumeArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    control::execute(CommandKind::Resume, &args.control, settings, console)
}
