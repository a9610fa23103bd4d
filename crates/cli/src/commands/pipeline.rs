//! `pipeline`: tasks that run after one another.

use clap::Args;

use crate::args::running::{ModuleArgs, RunningArgs};
use crate::args::values;
use crate::error::CliError;

/// Run a pipeline in the foreground, to its end.
///
/// Ctrl-C stops it gracefully; a second one kills it. Exit code 3 when it did not succeed.
#[derive(Clone, Debug, Args)]
pub struct PipelineArgs {
    /// Where the pipeline is defined.
    #[command(flatten)]
    pub module: ModuleArgs,

    /// The pipeline's name
    #[arg(value_name = "NAME", value_parser = values::name)]
    pub name: String,

    /// Arguments of nodes in place of the manifest's, as {"node": {"name": value}}
    #[arg(long, value_name = "OBJECT")]
    pub args_json: Option<String>,

    /// The run's id, which the ids of its tasks begin with [default: a new one]
    #[arg(long, value_name = "ID", value_parser = values::name)]
    pub id: Option<String>,

    /// How it is run.
    #[command(flatten)]
    pub running: RunningArgs,
}

/// Says that it cannot be done yet.
pub(super) fn execute(args: &PipelineArgs) -> Result<u8, CliError> {
    Err(CliError::user(format!(
        "cannot run the pipeline `{}`: this program was built without pipelines",
        args.name
    ))
    .hint("run its tasks one by one with `run`"))
}
