//! `run`: one task in the foreground.

use chongming_core::TaskId;
use clap::Args;

use crate::Host;
use crate::args::global::Settings;
use crate::args::running::{ModuleArgs, RunningArgs};
use crate::args::values;
use crate::arguments;
use crate::error::CliError;
use crate::output::console::Console;

/// Run one task in the foreground, to its end.
///
/// Ctrl-C stops it gracefully; a second one kills it. Exit code 3 when it did not succeed.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Where the task is defined.
    #[command(flatten)]
    pub(crate) module: ModuleArgs,

    /// The task's name
    #[arg(value_name = "NAME", value_parser = values::name)]
    pub(crate) name: String,

    /// An argument; may be repeated. For a command it is text, for a Rust function JSON if it can be read as that
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = arguments::parse_pair)]
    pub(crate) args: Vec<(String, String)>,

    /// Arguments as one JSON object; a Rust function without named parameters takes any JSON
    #[arg(long, value_name = "OBJECT", allow_hyphen_values = true)]
    pub(crate) args_json: Option<String>,

    /// The task's id [default: a new one]
    #[arg(long, value_name = "ID", value_parser = values::task_id)]
    pub(crate) id: Option<TaskId>,

    /// How it is run.
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Runs it.
#[cfg(feature = "process")]
pub(super) fn execute(
    args: &RunArgs,
    settings: &Settings,
    host: &Host,
    console: &mut Console,
) -> Result<u8, CliError> {
    use std::time::SystemTime;

    use crate::arguments::Given;
    use crate::exit_codes;
    use crate::open_store;
    use crate::output::json;
    use crate::supervisor::{Limits, Supervisor, single};
    use crate::views::task::{TaskJson, summary_lines};

    let opened = open_store::open_unless_missing(settings)?;
    let module = args.module.load(host)?;
    let given = Given { pairs: args.args.clone(), json: args.args_json.clone() };
    let single = single::prepare(&module, &args.name, &given, args.id.as_ref(), &args.running)?;
    let limits = Limits::of(&module);
    let supervisor = Supervisor::start(opened, &limits, &args.running, settings, console)?;
    let outcome = supervisor.run(single.definition, single.submit)?;
    let task = &*outcome.snapshot;
    if settings.json {
        json::write_value(console, &TaskJson::from(task))?;
    } else {
        console.lines(&summary_lines(task, SystemTime::now().into()))?;
    }
    Ok(if outcome.ok() { exit_codes::DONE } else { exit_codes::NOT_SUCCEEDED })
}

/// Says that this build cannot.
#[cfg(not(feature = "process"))]
pub(super) fn execute(
    args: &RunArgs,
    _: &Settings,
    _: &Host,
    _: &mut Console,
) -> Result<u8, CliError> {
    Err(CliError::without_feature(format_args!("run `{}`", args.name), "process"))
}
