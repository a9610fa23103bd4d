//! `reconcile`: the truth about tasks whose holder died.

use clap::Args;

/// Declare tasks lost whose holder died in their midst, and report those that can be adopted.
///
/// Looks only at owned buckets, and never runs anything.
#[derive(Clone, Debug, Args)]
pub struct ReconcileArgs {
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,

    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub reason: Option<String>,
}
