//! `ps`: the tasks of a store.

use std::time::Duration;

use chongming_core::{BucketSet, Status};
use clap::Args;

use crate::args::values;

/// List tasks, the newest first.
///
/// Without --all or --status, only those that have not ended.
#[derive(Clone, Debug, Args)]
pub struct PsArgs {
    /// Ended tasks too
    #[arg(short, long)]
    pub all: bool,

    /// Only tasks in the buckets of --owned-buckets
    #[arg(long)]
    pub mine: bool,

    /// Only tasks in this state; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',', value_parser = values::status())]
    pub statuses: Vec<Status>,

    /// Only tasks in these buckets, such as 0-15,20
    #[arg(long, value_name = "BUCKETS", allow_hyphen_values = true)]
    pub bucket: Option<BucketSet>,

    /// Only tasks with this tag; may be repeated, all of them count
    #[arg(long = "tag", value_name = "TAG", value_parser = values::text)]
    pub tags: Vec<String>,

    /// Only tasks of this name
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub name: Option<String>,

    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,

    /// Show it anew again and again [default interval: 1s]
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = values::positive_duration
    )]
    pub watch: Option<Duration>,
}
