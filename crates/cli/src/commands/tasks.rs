//! `tasks`: what a task module defines.

use chongming_core::{TaskDefinition, Value};
use clap::Args;
use serde::Serialize;

use crate::Host;
use crate::args::global::Settings;
use crate::args::running::ModuleArgs;
use crate::arguments;
use crate::error::CliError;
use crate::exit_codes;
use crate::manifest::{Manifest, TaskEntry};
use crate::module::{Functions, TaskModule};
use crate::output::console::Console;
use crate::output::json;
use crate::output::table::{Column, Table};

/// List the tasks of a module with their parameters, and its pipelines.
#[derive(Clone, Debug, Args)]
pub struct TasksArgs {
    /// Where the tasks are defined.
    #[command(flatten)]
    pub module: ModuleArgs,
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
    match args.module.load(host)? {
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

/// A row for each node; the name of a pipeline stands in the first of its rows.
fn pipelines(manifest: &Manifest) -> Table<5> {
    let mut table = Table::new([
        Column::key("PIPELINE"),
        Column::key("NODE"),
        Column::text("TASK"),
        Column::text("DEPENDS_ON"),
        Column::key("JOIN"),
    ]);
    for pipeline in &manifest.pipelines {
        let names = std::iter::once(pipeline.name.as_str()).chain(std::iter::repeat(" "));
        for (name, node) in names.zip(&pipeline.nodes) {
            // Without upstream there is nothing to join.
            let join = if node.depends_on.is_empty() { "" } else { node.join.as_str() };
            table.row([
                name.into(),
                node.id.as_str().into(),
                node.task.as_str().into(),
                node.depends_on.join(" ").into(),
                join.into(),
            ]);
        }
    }
    table
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
