//! `prune`: removes what ended long ago.

use std::time::Duration;

use clap::Args;

use crate::duration;

/// Delete tasks that ended long ago, with their history. Never one that has not ended.
#[derive(Clone, Copy, Debug, Args)]
pub struct PruneArgs {
    /// How long ago they must have ended
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub older_than: Duration,

    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}
