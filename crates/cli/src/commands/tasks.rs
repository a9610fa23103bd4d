//! `tasks`: what a task module defines.

use std::collections::HashMap;

use chongming_core::{TaskDefinition, Value};
use chongming_pipeline::Join;
use clap::Args;
use serde::Serialize;

use crate::Host;
use crate::args::global::Settings;
use crate::args::running::ModuleArgs;
use crate::arguments;
use crate::error::CliError;
use crate::exit_codes;
use crate::manifest::{Manifest, NodeEntry, PipelineEntry, TaskEntry};
use crate::module::{Functions, TaskModule};
use crate::output::console::Console;
use crate::output::dot::{Dot, DotNode};
use crate::output::graph;
use crate::output::json;
use crate::output::table::{Column, Table};

/// List the tasks of a module with their parameters, and draw its pipelines.
#[derive(Clone, Debug, Args)]
pub(crate) struct TasksArgs {
    /// Where the tasks are defined.
    #[command(flatten)]
    pub(crate) module: ModuleArgs,

    /// The pipelines alone, as a graph in the language of Graphviz
    #[arg(long)]
    pub(crate) dot: bool,
}

/// A definition as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TaskJson<'a> {
    name: &'a str,
    params: Vec<ParameterJson<'a>>,
    tags: Vec<&'a str>,
    bucket_key: Option<&'a str>,
    priority: i32,
    max_attempts: u32,
    /// None for a Rust function.
    command: Option<Vec<&'a str>>,
}

#[derive(Debug, Serialize)]
struct ParameterJson<'a> {
    name: &'a str,
    required: bool,
    default: Option<&'a Value>,
    help: Option<&'a str>,
}

impl<'a> From<&'a TaskEntry> for TaskJson<'a> {
    fn from(task: &'a TaskEntry) -> Self {
        let params = task.params.iter().map(|param| ParameterJson {
            name: &param.name,
            required: param.default.is_none(),
            default: param.default.as_ref(),
            help: param.help.as_deref(),
        });
        Self {
            name: &task.name,
            params: params.collect(),
            tags: task.tags.iter().map(String::as_str).collect(),
            bucket_key: task.bucket_key.as_ref().map(|key| key.source()),
            priority: task.priority.unwrap_or_default(),
            max_attempts: task.retry.as_ref().map_or(1, |retry| retry.max_attempts.get()),
            command: Some(task.command.iter().map(|part| part.source()).collect()),
        }
    }
}

impl<'a> From<&'a TaskDefinition> for TaskJson<'a> {
    fn from(task: &'a TaskDefinition) -> Self {
        let params = task.params().iter().map(|param| ParameterJson {
            name: &param.name,
            required: param.default.is_none(),
            default: param.default.as_ref(),
            help: param.help.as_deref(),
        });
        let defaults = task.defaults();
        Self {
            name: task.name(),
            params: params.collect(),
            tags: defaults.tags.iter().map(|tag| &**tag).collect(),
            bucket_key: None,
            priority: defaults.priority,
            max_attempts: defaults.retry.max_attempts.get(),
            command: None,
        }
    }
}

/// Lists them.
pub(super) fn execute(
    args: &TasksArgs,
    settings: &Settings,
    host: &Host,
    console: &mut Console,
) -> Result<u8, CliError> {
    let module = args.module.load(host)?;
    if args.dot {
        let pipelines = match &module {
            TaskModule::Manifest(manifest) => manifest.pipelines.as_slice(),
            TaskModule::Executable(_) | TaskModule::Own(_) => &[],
        };
        console.line(&dot(pipelines))?;
        return Ok(exit_codes::DONE);
    }
    match module {
        TaskModule::Manifest(manifest) => list_manifest(&manifest, settings, console),
        TaskModule::Executable(functions) => list_functions(&functions, settings, console),
        TaskModule::Own(functions) => list_functions(functions, settings, console),
    }
}

fn list_functions(
    functions: &Functions,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let tasks = || functions.registry.iter().map(|task| &**task);
    if settings.json {
        json::write_array(console, tasks().map(TaskJson::from))?;
        return Ok(exit_codes::DONE);
    }
    let mut table = Table::new([Column::key("NAME"), Column::text("PARAMS"), Column::text("TAGS")]);
    for task in tasks() {
        let params = task.params().iter().map(|param| (&*param.name, param.default.as_ref()));
        let tags: Vec<&str> = task.defaults().tags.iter().map(|tag| &**tag).collect();
        table.row([task.name().into(), shown(params).into(), tags.join(",").into()]);
    }
    console.table(&table)?;
    Ok(exit_codes::DONE)
}

fn list_manifest(
    manifest: &Manifest,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    if settings.json {
        json::write_array(console, manifest.tasks.iter().map(TaskJson::from))?;
        return Ok(exit_codes::DONE);
    }
    let mut table = Table::new([
        Column::key("NAME"),
        Column::text("PARAMS"),
        Column::text("TAGS"),
        Column::text("COMMAND"),
    ]);
    for task in &manifest.tasks {
        let command: Vec<&str> = task.command.iter().map(|part| part.source()).collect();
        table.row([
            task.name.as_str().into(),
            params(task).into(),
            task.tags.join(",").into(),
            command.join(" ").into(),
        ]);
    }
    console.table(&table)?;
    if !manifest.pipelines.is_empty() {
        console.line("")?;
        console.table(&pipelines(manifest))?;
    }
    Ok(exit_codes::DONE)
}

/// A row for each node, below those that it waits for; the name of a pipeline stands in the first of its rows.
fn pipelines(manifest: &Manifest) -> Table<6> {
    let mut table = Table::new([
        Column::key("PIPELINE"),
        Column::text("GRAPH"),
        Column::key("NODE"),
        Column::text("TASK"),
        Column::text("DEPENDS_ON"),
        Column::key("JOIN"),
    ]);
    for pipeline in &manifest.pipelines {
        let names = std::iter::once(pipeline.name.as_str()).chain(std::iter::repeat(" "));
        for (name, line) in names.zip(graph::draw(&upstream(pipeline))) {
            let Some(node) = pipeline.nodes.get(line.node) else { continue };
            // Without upstream there is nothing to join.
            let join = if node.depends_on.is_empty() { "" } else { node.join.as_str() };
            table.row([
                name.into(),
                line.lanes.into(),
                node.id.as_str().into(),
                node.task.as_str().into(),
                node.depends_on.join(" ").into(),
                join.into(),
            ]);
        }
    }
    table
}

/// For each node the numbers of those that it waits for.
fn upstream(pipeline: &PipelineEntry) -> Vec<Vec<usize>> {
    let numbers: HashMap<&str, usize> = pipeline
        .nodes
        .iter()
        .enumerate()
        .map(|(number, node)| (node.id.as_str(), number))
        .collect();
    let upstream = |node: &NodeEntry| {
        node.depends_on.iter().filter_map(|id| numbers.get(id.as_str()).copied()).collect()
    };
    pipeline.nodes.iter().map(upstream).collect()
}

/// The pipelines for Graphviz; an edge shows how its node joins.
fn dot(pipelines: &[PipelineEntry]) -> String {
    let mut dot = Dot::default();
    for pipeline in pipelines {
        let words: Vec<[&str; 2]> =
            pipeline.nodes.iter().map(|node| [node.id.as_str(), node.task.as_str()]).collect();
        let nodes = pipeline.nodes.iter().zip(&words).zip(upstream(pipeline));
        let nodes = nodes.map(|((node, words), from)| DotNode {
            words,
            from,
            style: match node.join {
                Join::AllSucceeded => "solid",
                Join::AllSettled => "dashed",
                Join::AnySucceeded => "dotted",
            },
        });
        dot.cluster(&pipeline.name, nodes);
    }
    dot.text()
}

fn params(task: &TaskEntry) -> String {
    shown(task.params.iter().map(|param| (param.name.as_str(), param.default.as_ref())))
}

/// `tenant day=today`: what must be given, and what may.
fn shown<'a>(params: impl Iterator<Item = (&'a str, Option<&'a Value>)>) -> String {
    let params = params.map(|(name, default)| match default {
        Some(default) => format!("{name}={}", arguments::text(default)),
        None => name.to_owned(),
    });
    params.collect::<Vec<_>>().join(" ")
}
