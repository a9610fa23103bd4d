//! `nodes`: who runs tasks.

use chongming_core::store::Now;
use clap::Args;

use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::node::{NodeJson, table};

/// List the nodes, living and dead, with the buckets they declared.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct NodesArgs {}

/// Lists them.
pub(super) fn execute(settings: &Settings, console: &mut Console) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let rows = store.nodes(Now::Store).map_err(store_error)?;
    if settings.json {
        json::write_array(console, rows.iter().map(NodeJson::from))?;
    } else {
        console.table(&table(&rows))?;
    }
    Ok(exit_codes::DONE)
}
