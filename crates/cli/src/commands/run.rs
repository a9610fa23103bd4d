//! `run`: one task in the foreground.

use chongming_core::TaskId;
use clap::Args;

use crate::args::running::{ModuleArgs, RunningArgs};
use crate::args::values;
use crate::arguments;

/// Run one task in the foreground, to its end.
///
/// Ctrl-C stops it gracefully; a second one kills it. Exit code 3 when it did not succeed.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Where the task is defined.
    #[command(flatten)]
    pub module: ModuleArgs,

    /// The task's name
    #[arg(value_name = "NAME", value_parser = values::name)]
    pub name: String,

    /// An argument, as text; may be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = arguments::parse_pair)]
    pub args: Vec<(String, String)>,

    /// Arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    pub args_json: Option<String>,

    /// The task's id [default: a new one]
    #[arg(long, value_name = "ID", value_parser = values::task_id)]
    pub id: Option<TaskId>,

    /// How it is run.
    #[command(flatten)]
    pub running: RunningArgs,
}
