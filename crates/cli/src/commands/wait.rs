//! `wait`: until tasks have ended.

use std::time::Duration;

use chongming_core::TaskId;
use clap::Args;

use crate::args::values;
use crate::duration;

/// Wait until all of these tasks have ended.
///
/// Exit code 3 unless all succeeded in time.
#[derive(Clone, Debug, Args)]
pub struct WaitArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true, value_parser = values::task_id)]
    pub ids: Vec<TaskId>,

    /// Wait no longer than this [default: without end]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub timeout: Option<Duration>,
}
