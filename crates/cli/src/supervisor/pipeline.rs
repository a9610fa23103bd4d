//! A manifest's pipeline as one that can be run, and such a run in the foreground.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use chongming_core::{TaskDefinition, TaskRun, TaskSnapshot, Text, Timestamp, Value};
use chongming_pipeline::{Node, Pipeline, PipelineOutcome, PipelineRun, PipelineStatus};

use super::definition::{bucket_key, definition, fill, take_arguments};
use super::foreground::Event;
use super::work::{Canvas, Work};
use crate::args::running::RunningArgs;
use crate::arguments::{self, Arguments};
use crate::error::CliError;
use crate::manifest::pipeline::NodeArgument;
use crate::manifest::template::{Placeholder, Template};
use crate::manifest::{Manifest, NodeEntry, PipelineEntry};
use crate::output::escape::visible;
use crate::views::pipeline::{frame, node_line};

/// Arguments of nodes in place of the manifest's.
pub(crate) type NodeArguments = BTreeMap<String, Vec<(String, Value)>>;

/// Reads the object of `--args-json`: for each node an object.
pub(crate) fn parse_arguments(
    entry: &PipelineEntry,
    text: &str,
) -> Result<NodeArguments, CliError> {
    let mut given = NodeArguments::new();
    for (node, value) in arguments::parse_json(text)? {
        let ids = || entry.nodes.iter().map(|node| node.id.as_str());
        if !ids().any(|id| id == node) {
            let error = format!("--args-json: pipeline `{}` has no node `{node}`", entry.name);
            return Err(CliError::new(error).hint_nearest(&node, "nodes", ids()));
        }
        let Value::Map(arguments) = value else {
            let error = format!("--args-json gives node `{node}` no object");
            return Err(CliError::new(error)
                .hint("write it as --args-json '{\"node\": {\"name\": \"value\"}}'"));
        };
        if given.insert(node.clone(), arguments.into_iter().collect()).is_some() {
            return Err(CliError::new(format!("--args-json names node `{node}` twice")));
        }
    }
    Ok(given)
}

/// The pipeline of a manifest, with what the command line says in its place.
pub(crate) fn pipeline(
    manifest: &Manifest,
    entry: &PipelineEntry,
    mut given: NodeArguments,
    running: &RunningArgs,
) -> Result<Pipeline, CliError> {
    let mut pipeline = Pipeline::new(entry.name.as_str()).aggregation(entry.aggregation);
    if let Some(label) = &running.label {
        pipeline = pipeline.label(label.as_str());
    }
    if let Some(key) = &running.bucket_key {
        pipeline = pipeline.bucket_key(key.as_str());
    }
    if let Some(priority) = running.priority {
        pipeline = pipeline.priority(priority);
    }
    if let Some(grace) = running.grace {
        pipeline = pipeline.grace(grace);
    }
    pipeline = running.tags.iter().fold(pipeline, |pipeline, tag| pipeline.tag(tag.as_str()));
    entry.nodes.iter().try_fold(pipeline, |pipeline, entry| {
        let given = given.remove(&entry.id).unwrap_or_default();
        Ok(pipeline.node(node(manifest, entry, given, running)?))
    })
}

/// The definitions of the tasks that a pipeline runs.
pub(crate) fn definitions(
    manifest: &Manifest,
    entry: &PipelineEntry,
    running: &RunningArgs,
) -> Result<Vec<TaskDefinition>, CliError> {
    let names: BTreeSet<&str> = entry.nodes.iter().map(|node| node.task.as_str()).collect();
    let define = |name| definition(manifest, manifest.task(name)?, running.grace);
    names.into_iter().map(define).collect()
}

fn node(
    manifest: &Manifest,
    entry: &NodeEntry,
    given: Vec<(String, Value)>,
    running: &RunningArgs,
) -> Result<Node, CliError> {
    let task = manifest.task(&entry.task)?;
    let mut templates = BTreeMap::new();
    let mut values = Arguments::new();
    for (name, argument) in &entry.args {
        let value = match argument {
            NodeArgument::Value(value) => value.clone(),
            NodeArgument::Template(template) => {
                templates.insert(name.clone(), template.clone());
                // Until its upstream has ended.
                Value::Null
            }
        };
        values.insert(name.clone(), value);
    }
    for (name, value) in given {
        templates.remove(&name);
        values.insert(name, value);
    }
    let arguments = take_arguments(task, values)?;
    let own_key = entry.bucket_key.as_ref().map(|key| fill(key, &arguments)).transpose();
    let key = match own_key.map_err(CliError::internal)? {
        None if running.bucket_key.is_none() => bucket_key(task, &arguments)?,
        key => key,
    };
    let mut node = Node::new(entry.id.as_str(), entry.task.as_str())
        .args(Value::Map(arguments.clone()))
        .depends_on(entry.depends_on.iter().map(String::as_str))
        .join(entry.join);
    if let Some(retry) = &entry.retry {
        node = node.retry(retry.clone());
    }
    if let Some(timeout) = entry.timeout {
        node = node.timeout(timeout);
    }
    if let Some(priority) = entry.priority {
        node = node.priority(priority);
    }
    if let Some(key) = key {
        node = node.bucket_key(key);
    }
    if !templates.is_empty() {
        node = node.args_from(move |upstream| {
            let filled =
                templates.iter().map(|(name, template)| (name.clone(), filled(template, upstream)));
            Ok(Value::Map(arguments.clone().into_iter().chain(filled).collect()))
        });
    }
    Ok(node)
}

/// A template with the results of upstream nodes; what is nothing but one result keeps its type. A node that
/// did not succeed has no result: null.
fn filled(template: &Template, upstream: &BTreeMap<Text, Value>) -> Value {
    let value = |placeholder: &Placeholder| match placeholder {
        Placeholder::NodeValue(node) => upstream.get(node.as_str()).unwrap_or(&Value::Null),
        // The manifest was checked: there is none.
        Placeholder::Parameter(_) => &Value::Null,
    };
    match template.whole() {
        Some(placeholder) => value(placeholder).clone(),
        None => {
            let text = template.fill(|placeholder| Some(arguments::text(value(placeholder))));
            Value::String(text.unwrap_or_default())
        }
    }
}

/// A run of a pipeline with its name.
pub(super) struct NamedRun {
    pub(super) pipeline: String,
    pub(super) run: PipelineRun,
}

impl NamedRun {
    fn snapshots(&self) -> Vec<(&str, Arc<TaskSnapshot>)> {
        let nodes = self.run.nodes();
        nodes.filter_map(|(node, task)| Some((&**node, task.snapshot()?))).collect()
    }
}

impl Work for NamedRun {
    type Outcome = PipelineOutcome;

    fn name(&self) -> String {
        let name = format!("pipeline {} ({})", self.pipeline, self.run.id());
        visible(&name).into_owned()
    }

    fn tasks(&self) -> Vec<&TaskRun> {
        self.run.nodes().map(|(_, task)| task).collect()
    }

    fn watch(&self, events: &Sender<Event>) {
        for (number, (_, task)) in self.run.nodes().enumerate() {
            task.notify(events, Event::TaskEnded(number));
        }
        self.run.notify(events, Event::Ended);
    }

    fn outcome(&self) -> Option<Arc<PipelineOutcome>> {
        self.run.outcome()
    }

    fn snapshots(outcome: &mut PipelineOutcome) -> Vec<&mut TaskSnapshot> {
        let outcomes = outcome.nodes.iter_mut().map(|node| Arc::make_mut(&mut node.outcome));
        outcomes.map(|outcome| Arc::make_mut(&mut outcome.snapshot)).collect()
    }

    fn conclude(outcome: &mut PipelineOutcome) {
        let ends = outcome.nodes.iter().map(|node| PipelineStatus::of(node.outcome.status()));
        outcome.status = ends.max().unwrap_or(outcome.status);
    }

    fn frame(&self, canvas: Canvas) -> Vec<String> {
        let nodes = self.snapshots();
        let rows: Vec<(&str, &TaskSnapshot)> =
            nodes.iter().map(|(n, task)| (*n, &**task)).collect();
        let room = (canvas.columns, canvas.rows);
        frame(&self.name(), &rows, canvas.now, room, canvas.color)
    }

    fn ended_line(&self, task: usize, now: Timestamp) -> Option<String> {
        let (node, task) = self.run.nodes().nth(task)?;
        let task = task.snapshot()?;
        Some(node_line(node, &task, now))
    }
}
