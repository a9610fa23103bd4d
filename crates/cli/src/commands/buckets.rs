//! `buckets`: how many tasks each bucket has.

use chongming_core::store::TaskFilter;
use clap::Args;

use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, Opened, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::counts;

/// Count the tasks of each bucket; a * marks those of --owned-buckets.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BucketsArgs {}

/// Counts them.
pub(super) fn execute(settings: &Settings, console: &mut Console) -> Result<u8, CliError> {
    let Opened { store, ownership } = open_store::open(settings)?;
    let counts = store.count(&TaskFilter::default()).map_err(store_error)?;
    let rows = counts::buckets(&counts, &ownership);
    if settings.json {
        json::write_array(console, &rows)?;
    } else {
        console.table(&counts::bucket_table(&rows, &ownership))?;
    }
    Ok(exit_codes::DONE)
}
