//! `reconcile`: the truth about tasks whose holder died.

use chongming_core::{SystemClock, reconcile};
use clap::Args;

use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, Opened, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::reconciled::{ReconciledJson, table};

/// Declare tasks lost whose holder died in their midst, and report those that can be adopted.
///
/// Looks only at owned buckets, and never runs anything.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
}

/// Does it.
pub(super) fn execute(
    args: &ReconcileArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let Opened { store, ownership } = open_store::open(settings)?;
    let (clock, reason) = (SystemClock::default(), args.reason.as_deref());
    let found =
        reconcile(&*store, &ownership, args.dry_run, reason, &clock).map_err(store_error)?;
    if settings.json {
        json::write_array(console, found.iter().map(ReconciledJson::from))?;
    } else {
        console.table(&table(&found))?;
    }
    Ok(exit_codes::DONE)
}
