//! `status`: everything about one task.

use std::time::SystemTime;

use chongming_core::Status;
use clap::Args;

use super::find;
use crate::args::control::TaskArg;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store;
use crate::output::console::Console;
use crate::output::{fields, json};
use crate::views::task::{self, TaskJson};

/// Show everything about one task.
///
/// Exit code 3 when it ended without success.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArgs {
    /// Which one.
    #[command(flatten)]
    pub(crate) task: TaskArg,
}

/// Shows it.
pub(super) fn execute(
    args: &StatusArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let task = find::task(&store, &args.task.id)?;
    if settings.json {
        json::write_value(console, &TaskJson::from(&task))?;
    } else {
        console.lines(&fields::lines(&task::fields(&task, SystemTime::now().into())))?;
    }
    let status = task.status();
    let is_well = !status.is_terminal() || status == Status::Succeeded;
    Ok(if is_well { exit_codes::DONE } else { exit_codes::NOT_SUCCEEDED })
}
