//! `history`: what happened to one task.

use clap::Args;

use super::find;
use crate::args::control::TaskArg;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store;
use crate::output::console::Console;
use crate::output::json;
use crate::views::transition::{TransitionJson, table};

/// Show what happened to one task, and who did it why.
#[derive(Clone, Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Which one.
    #[command(flatten)]
    pub(crate) task: TaskArg,
}

/// Shows it.
pub(super) fn execute(
    args: &HistoryArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let id = find::task(&store, &args.task.id)?.id;
    let rows = find::whole_history(&store, &id)?;
    if settings.json {
        json::write_array(console, rows.iter().map(TransitionJson::from))?;
    } else {
        console.table(&table(&rows))?;
    }
    Ok(exit_codes::DONE)
}
