//! `stats`: how many tasks there are.

use chongming_core::store::TaskFilter;
use clap::Args;

use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::counts;

/// Count the tasks by status.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct StatsArgs {}

/// Counts them.
pub(super) fn execute(settings: &Settings, console: &mut Console) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let stats = counts::stats(&store.count(&TaskFilter::default()).map_err(store_error)?);
    if settings.json {
        json::write_value(console, &stats)?;
    } else {
        console.table(&stats.table())?;
    }
    Ok(exit_codes::DONE)
}
