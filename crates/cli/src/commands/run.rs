//! `run`: one task in the foreground.

use chongming_core::TaskId;
use clap::Args;

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

/// Runs it.
#[cfg(feature = "process")]
pub(super) fn execute(
    args: &RunArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    use std::time::SystemTime;

    use chongming_core::{Submit, Value};

    use crate::exit_codes;
    use crate::manifest::Manifest;
    use crate::open_store;
    use crate::output::json;
    use crate::supervisor::Supervisor;
    use crate::supervisor::definition::{bucket_key, definition, take_arguments};
    use crate::views::task::{TaskJson, summary_lines};

    let opened = open_store::open_unless_missing(settings)?;
    let manifest = Manifest::load(args.module.require()?)?;
    let entry = manifest.task(&args.name)?;
    let mut given: Vec<(String, Value)> = Vec::new();
    given.extend(args.args.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
    if let Some(json) = &args.args_json {
        given.extend(arguments::parse_json(json)?);
    }
    let arguments = take_arguments(entry, given)?;
    let running = &args.running;
    let key = match &running.bucket_key {
        Some(key) => Some(key.clone()),
        None => bucket_key(entry, &arguments)?,
    };

    let mut submit = Submit::new(entry.name.as_str()).args(Value::Map(arguments));
    submit = running.tags.iter().fold(submit, |submit, tag| submit.tag(tag.as_str()));
    if let Some(id) = &args.id {
        submit = submit.id(id.clone());
    }
    if let Some(label) = &running.label {
        submit = submit.label(label.as_str());
    }
    if let Some(key) = key {
        submit = submit.bucket_key(key);
    }
    if let Some(priority) = running.priority {
        submit = submit.priority(priority);
    }
    if let Some(grace) = running.grace {
        submit = submit.grace(grace);
    }

    let opened = opened.map_or_else(|| open_store::create(settings), Ok)?;
    let supervisor = Supervisor::start(opened, &manifest, running, settings, console)?;
    let outcome = supervisor.run(definition(&manifest, entry, running.grace)?, submit)?;
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
pub(super) fn execute(args: &RunArgs, _: &Settings, _: &mut Console) -> Result<u8, CliError> {
    Err(CliError::user(format!(
        "cannot run `{}`: this program was built without its feature `process`",
        args.name
    ))
    .hint("use a program that was built with it"))
}
