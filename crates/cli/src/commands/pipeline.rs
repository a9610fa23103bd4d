//! `pipeline`: tasks that run after one another.

use chongming_core::TaskId;
use clap::Args;

use crate::Host;
use crate::args::global::Settings;
use crate::args::running::{ModuleArgs, RunningArgs};
use crate::args::values;
use crate::error::CliError;
use crate::output::console::Console;

/// Run a pipeline in the foreground, to its end.
///
/// Ctrl-C stops it gracefully; a second one kills it. Exit code 3 when it did not succeed.
#[derive(Clone, Debug, Args)]
pub(crate) struct PipelineArgs {
    /// Where the pipeline is defined.
    #[command(flatten)]
    pub(crate) module: ModuleArgs,

    /// The pipeline's name
    #[arg(value_name = "NAME", value_parser = values::name)]
    pub(crate) name: String,

    /// Arguments of nodes in place of the manifest's, as {"node": {"name": value}}
    #[arg(long, value_name = "OBJECT", allow_hyphen_values = true)]
    pub(crate) args_json: Option<String>,

    /// The run's id, which the ids of its tasks begin with [default: a new one]
    #[arg(long, value_name = "ID", value_parser = values::task_id)]
    pub(crate) id: Option<TaskId>,

    /// How it is run.
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// Runs it.
#[cfg(feature = "pipeline")]
pub(super) fn execute(
    args: &PipelineArgs,
    settings: &Settings,
    host: &Host,
    console: &mut Console,
) -> Result<u8, CliError> {
    use std::time::SystemTime;

    use crate::exit_codes;
    use crate::open_store;
    use crate::output::escape::visible;
    use crate::output::json;
    use crate::supervisor::pipeline::{NodeArguments, definitions, parse_arguments, pipeline};
    use crate::supervisor::{Limits, Supervisor};
    use crate::views::pipeline::{PipelineJson, PipelineNodeJson, counts, table};
    use crate::views::task::TaskJson;

    let opened = open_store::open_unless_missing(settings)?;
    let manifest = args.module.load(host)?.manifest("pipeline")?;
    let entry = manifest.pipeline(&args.name)?;
    let given = match &args.args_json {
        Some(json) => parse_arguments(entry, json)?,
        None => NodeArguments::new(),
    };
    let run = args.id.clone().unwrap_or_else(TaskId::generate);
    let pipeline = pipeline(&manifest, entry, given, &args.running)?;
    pipeline.check_as(&run).map_err(|error| {
        let error = CliError::new(error.to_string());
        error.hint(format!("it is defined in {}", manifest.path.display()))
    })?;
    let definitions = definitions(&manifest, entry, &args.running)?;

    let limits = Limits::of_manifest(&manifest);
    let supervisor = Supervisor::start(opened, &limits, &args.running, settings, console)?;
    let outcome = supervisor.run_pipeline(definitions, &pipeline, &entry.name, &run)?;
    if settings.json {
        let nodes = outcome.nodes.iter().map(|node| PipelineNodeJson {
            node: &node.node,
            depends_on: node.depends_on.iter().map(|upstream| &**upstream).collect(),
            join: node.join.as_str(),
            task: TaskJson::from(&*node.outcome.snapshot),
        });
        let json = PipelineJson {
            pipeline: &outcome.pipeline,
            run_id: &outcome.run_id,
            status: outcome.status.as_str(),
            nodes: nodes.collect(),
        };
        json::write_value(console, &json)?;
    } else {
        let tasks = || outcome.nodes.iter().map(|node| &*node.outcome.snapshot);
        let names = outcome.nodes.iter().map(|node| &*node.node);
        console.table(&table(names.zip(tasks()), SystemTime::now().into()))?;
        let run = format!("pipeline {} ({})", outcome.pipeline, outcome.run_id);
        console.line(&format!("{} {}: {}", visible(&run), outcome.status, counts(tasks())))?;
    }
    Ok(if outcome.ok() { exit_codes::DONE } else { exit_codes::NOT_SUCCEEDED })
}

/// Says that this build cannot.
#[cfg(not(feature = "pipeline"))]
pub(super) fn execute(
    args: &PipelineArgs,
    _: &Settings,
    _: &Host,
    _: &mut Console,
) -> Result<u8, CliError> {
    let what = format_args!("run the pipeline `{}`", args.name);
    Err(CliError::without_feature(what, "pipeline"))
}
