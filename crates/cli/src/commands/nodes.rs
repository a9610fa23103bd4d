//! `nodes`: who runs tasks.

use clap::Args;

/// List the nodes, living and dead, with the buckets they declared.
#[derive(Clone, Copy, Debug, Args)]
pub struct NodesArgs {}
