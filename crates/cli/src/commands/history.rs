//! `history`: what happened to one task.

use chongming_core::Transition;
use clap::Args;

use super::find;
use crate::args::control::TaskArg;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::transition::{TransitionJson, table};

/// Changes that are read at once.
const PAGE: usize = 1000;

/// Show what happened to one task, and who did it why.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Which one.
    #[command(flatten)]
    pub task: TaskArg,
}

/// Shows it.
pub(super) fn execute(
    args: &HistoryArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let id = find::task(&store, &args.task.id)?.id;
    let mut rows: Vec<Transition> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.version);
        let page = store.history(&id, after, PAGE).map_err(store_error)?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            break;
        }
    }
    if settings.json {
        json::write_array(console, rows.iter().map(TransitionJson::from))?;
    } else {
        console.table(&table(&rows))?;
    }
    Ok(exit_codes::DONE)
}
