//! `doctor`: what is wrong with the deployment.

use std::time::Duration;

use clap::Args;

use crate::duration;

/// Look for what is wrong: shared or unowned buckets, owners that live twice, orphaned tasks.
///
/// Exit code 3 when there is an alert.
#[derive(Clone, Copy, Debug, Args)]
pub struct DoctorArgs {
    /// Tasks without a living holder that have not changed for so long are orphans
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "5m", value_parser = duration::parse)]
    pub stale: Duration,
}
