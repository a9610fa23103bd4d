//! `[pipelines.NAME]`: tasks that run after one another.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::str::FromStr;

use chongming_core::{RetryPolicy, Timeout, Value};
use chongming_pipeline::{Aggregation, InvalidPipeline, Join, Mistake, Pipeline};

use super::policy;
use super::reader::{Key, Node};
use super::task::TaskEntry;
use super::template::{Placeholder, Template};
use crate::nearest::nearest;

/// A pipeline of a manifest.
///
/// Its nodes are known, their arguments fit, and they do not wait for one another in a circle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PipelineEntry {
    /// The name that it is run by.
    pub(crate) name: String,
    /// What a failed node means for the others.
    pub(crate) aggregation: Aggregation,
    /// At least one, in the order of the file.
    pub(crate) nodes: Vec<NodeEntry>,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeEntry {
    /// The name within the pipeline.
    pub(crate) id: String,
    /// The task that it runs.
    pub(crate) task: String,
    /// The arguments by parameter name.
    pub(crate) args: BTreeMap<String, NodeArgument>,
    /// The upstream nodes, in the order of the file.
    pub(crate) depends_on: Vec<String>,
    /// When it may start.
    pub(crate) join: Join,
    /// In place of the task's own.
    pub(crate) retry: Option<RetryPolicy>,
    /// In place of the task's own.
    pub(crate) timeout: Option<Timeout>,
    /// In place of the task's own.
    pub(crate) priority: Option<i32>,
    /// In place of the task's own; it may use the task's parameters.
    pub(crate) bucket_key: Option<Template>,
}

/// An argument of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeArgument {
    /// Known from the start.
    Value(Value),
    /// Filled in with the results of upstream nodes.
    Template(Template),
}

/// A node with the places of what is checked against other nodes.
struct Located<'d, 't> {
    entry: NodeEntry,
    id: Node<'d, 't>,
    dependencies: Vec<Node<'d, 't>>,
}

pub(super) fn pipeline(
    key: &Key<'_, '_>,
    node: &Node<'_, '_>,
    tasks: &[Option<TaskEntry>],
) -> Option<PipelineEntry> {
    let name = key.name();
    let fields = node.fields("a table with `nodes`")?;
    let aggregation = fields.read("aggregation", word).unwrap_or_default();
    let nodes = fields.require("nodes", |list| {
        let nodes = list.list(|node| Some(node_entry(node, tasks)), "a list of nodes")?;
        if nodes.is_empty() {
            list.problem("is empty: a pipeline needs a node");
        }
        nodes.into_iter().collect::<Option<Vec<_>>>()
    });
    fields.finish();
    let nodes = nodes?;
    check_dependencies(&nodes);
    check_cycles(&nodes);
    let nodes = nodes.into_iter().map(|located| located.entry).collect();
    Some(PipelineEntry { name: name?, aggregation, nodes })
}

/// A word that the pipeline crate knows, or says what is wrong with it.
fn word<T: FromStr<Err: Display>>(node: &Node<'_, '_>) -> Option<T> {
    match node.string()?.parse() {
        Ok(word) => Some(word),
        Err(error) => {
            node.problem(format!("is wrong: {error}"));
            None
        }
    }
}

fn node_entry<'d, 't>(node: &Node<'d, 't>, tasks: &[Option<TaskEntry>]) -> Option<Located<'d, 't>> {
    let fields = node.fields("a table with an `id` and a `task`")?;
    let id = fields.require("id", |node| Some((node.name()?, node.clone())));
    let task = fields.require("task", |node| Some((node.string()?, known_task(node, tasks)?)));
    let dependencies = fields
        .read("depends_on", |node| {
            node.list(|node| Some((node.string()?.to_owned(), node.clone())), "a list of node ids")
        })
        .unwrap_or_default();
    let (depends_on, dependencies): (Vec<String>, Vec<Node<'d, 't>>) =
        dependencies.into_iter().unzip();
    let args_node = fields.get("args");
    let args = args_node
        .as_ref()
        .map_or_else(|| Some(BTreeMap::new()), |node| arguments(node, &depends_on));
    let join = fields.read("join", word).unwrap_or_default();
    let retry = fields.read("retry", policy::retry);
    let timeout = fields.read("timeout", policy::timeout);
    let priority = fields.read("priority", |node| node.integer(i32::MIN));
    let bucket_key_node = fields.get("bucket_key");
    let bucket_key = bucket_key_node.as_ref().and_then(Node::template);

    if let (Some((_, Task::Read(task))), Some(args)) = (&task, &args) {
        check_arguments(args_node.as_ref().unwrap_or(&fields.node), task, args);
        let key = bucket_key.as_ref().or(task.bucket_key.as_ref());
        if let Some(key) = key {
            check_bucket_key(bucket_key_node.as_ref().unwrap_or(&fields.node), key, task, args);
        }
    }
    fields.finish();
    let (id, id_node) = id?;
    let entry = NodeEntry {
        id,
        task: task?.0.to_owned(),
        args: args?,
        depends_on,
        join,
        retry,
        timeout,
        priority,
        bucket_key,
    };
    Some(Located { entry, id: id_node, dependencies })
}

/// What is known of a task that a node names.
enum Task<'m> {
    Read(&'m TaskEntry),
    /// It is there, but wrong, which was reported.
    Wrong,
}

fn known_task<'m>(node: &Node<'_, '_>, tasks: &'m [Option<TaskEntry>]) -> Option<Task<'m>> {
    let name = node.string()?;
    let names = || tasks.iter().flatten().map(|task| task.name.as_str());
    if let Some(task) = tasks.iter().flatten().find(|task| task.name == name) {
        return Some(Task::Read(task));
    }
    if tasks.iter().any(Option::is_none) {
        return Some(Task::Wrong);
    }
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add [tasks.{name}]"),
    };
    node.problem(format!("is `{name}`, which is no task of this manifest; {help}"));
    None
}

fn arguments(node: &Node<'_, '_>, depends_on: &[String]) -> Option<BTreeMap<String, NodeArgument>> {
    let read: Vec<Option<(String, NodeArgument)>> = node
        .entries()?
        .map(|(key, node)| Some((key.text.to_owned(), argument(&node, depends_on)?)))
        .collect();
    read.into_iter().collect()
}

fn argument(node: &Node<'_, '_>, depends_on: &[String]) -> Option<NodeArgument> {
    let value = node.any()?;
    if !matches!(value, Value::String(_)) {
        return Some(NodeArgument::Value(value));
    }
    let template = node.template()?;
    let mut filled = false;
    for placeholder in template.placeholders() {
        filled = true;
        match placeholder {
            Placeholder::NodeValue(upstream) if depends_on.contains(upstream) => {}
            Placeholder::NodeValue(upstream) => node.problem(format!(
                "uses {placeholder}, but `{upstream}` is no direct upstream: add it to `depends_on`"
            )),
            Placeholder::Parameter(name) => node.problem(format!(
                "uses {placeholder}, but a pipeline has no parameters: write {{{name}.value}} for \
                 the result of a node, or `{{{{` for a brace"
            )),
        }
    }
    if filled {
        return Some(NodeArgument::Template(template));
    }
    // Only doubled braces can be left, and they become single ones.
    let text = template.fill(|_| None::<&str>).ok()?;
    Some(NodeArgument::Value(Value::String(text)))
}

fn check_arguments(node: &Node<'_, '_>, task: &TaskEntry, args: &BTreeMap<String, NodeArgument>) {
    let names = || task.params.iter().map(|param| param.name.as_str());
    for name in args.keys().filter(|name| !names().any(|param| param == *name)) {
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it, or add it to the task's `params`".to_owned(),
        };
        node.problem(format!("gives `{name}`, which task `{}` does not take; {help}", task.name));
    }
    for param in &task.params {
        if param.default.is_none() && !args.contains_key(&param.name) {
            node.problem(format!(
                "does not give `{}`, which task `{}` needs",
                param.name, task.name
            ));
        }
    }
}

/// A bucket is fixed at submission, when no upstream node has a result yet.
fn check_bucket_key(
    node: &Node<'_, '_>,
    key: &Template,
    task: &TaskEntry,
    args: &BTreeMap<String, NodeArgument>,
) {
    for placeholder in key.placeholders() {
        let problem = match placeholder {
            Placeholder::Parameter(name) => match args.get(name) {
                Some(NodeArgument::Template(_)) => format!(
                    "takes its bucket from {placeholder}, which is known only when an upstream \
                     node has ended: give the node a `bucket_key` of its own"
                ),
                Some(NodeArgument::Value(_)) => continue,
                None if task.params.iter().any(|param| param.name == *name) => continue,
                None => {
                    format!("uses {placeholder}, which is no parameter of task `{}`", task.name)
                }
            },
            Placeholder::NodeValue(_) => {
                format!("uses {placeholder}, but a bucket is fixed before any node has a result")
            }
        };
        node.problem(problem);
    }
}

fn check_dependencies(nodes: &[Located<'_, '_>]) {
    let ids = || nodes.iter().map(|node| node.entry.id.as_str());
    let known: HashSet<&str> = ids().collect();
    let mut earlier = HashSet::with_capacity(known.len());
    for node in nodes {
        let id = node.entry.id.as_str();
        if !earlier.insert(id) {
            node.id.problem(format!("is `{id}`, as is an earlier node: ids are unique"));
        }
        let mut named = HashSet::with_capacity(node.dependencies.len());
        for (dependency, place) in node.entry.depends_on.iter().zip(&node.dependencies) {
            let is_repeated = !named.insert(dependency);
            if dependency == id {
                place.problem(format!("is `{id}` itself: a node cannot wait for itself"));
            } else if !known.contains(dependency.as_str()) {
                let help = match nearest(dependency, ids()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add it or remove this".to_owned(),
                };
                place.problem(format!("is `{dependency}`, which is no node here; {help}"));
            } else if is_repeated {
                place.problem(format!("is `{dependency}` for a second time: remove one"));
            }
        }
    }
}

/// The pipeline crate knows what a circle is; here is where to find it.
fn check_cycles(nodes: &[Located<'_, '_>]) {
    let graph = nodes.iter().fold(Pipeline::new("graph"), |graph, Located { entry, .. }| {
        let node = chongming_pipeline::Node::new(&*entry.id, &*entry.task);
        graph.node(node.depends_on(entry.depends_on.iter().map(String::as_str)))
    });
    let Err(InvalidPipeline { mistakes, .. }) = graph.check() else { return };
    for mistake in &mistakes {
        let Mistake::Cycle(ids) = mistake else { continue };
        let first = nodes.iter().find(|node| ids.iter().any(|id| **id == *node.entry.id));
        if let Some(node) = first {
            node.id.problem(format!("is in a circle: {mistake}; remove one of the `depends_on`"));
        }
    }
}
