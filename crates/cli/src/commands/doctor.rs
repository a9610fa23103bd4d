//! `doctor`: what is wrong with the deployment.

use std::time::{Duration, SystemTime};

use chongming_core::examine;
use clap::Args;

use crate::args::global::Settings;
use crate::duration;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::Console;
use crate::output::json;
use crate::views::alert::{DoctorJson, table};

/// Look for what is wrong: shared or unowned buckets, owners that live twice, orphaned tasks.
///
/// Exit code 3 when there is an alert.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Tasks without a living holder that have not changed for so long are orphans
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "5m", value_parser = duration::parse)]
    pub(crate) stale: Duration,
}

/// Looks for it.
pub(super) fn execute(
    args: DoctorArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let alerts = examine(&*store, args.stale, SystemTime::now().into()).map_err(store_error)?;
    if settings.json {
        json::write_value(console, &DoctorJson::from(&*alerts))?;
    } else if alerts.is_empty() {
        console.line("no alerts")?;
    } else {
        console.table(&table(&alerts))?;
    }
    Ok(if alerts.is_empty() { exit_codes::DONE } else { exit_codes::NOT_SUCCEEDED })
}
