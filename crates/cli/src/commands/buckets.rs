//! `buckets`: how many tasks each bucket has.

use clap::Args;

/// Count the tasks of each bucket; a * marks those of --owned-buckets.
#[derive(Clone, Copy, Debug, Args)]
pub struct BucketsArgs {}
