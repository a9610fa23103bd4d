//! `[tasks.NAME]`: a command that can be run under that name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chongming_core::{RetryPolicy, Timeout, Value};

#[cfg(feature = "process")]
use chongming_executor_process::RESERVED_VARIABLES;

use super::policy;
use super::reader::{Key, Node};
use super::template::{Placeholder, Template, is_parameter_name};
use crate::arguments::has_nul;
use crate::nearest::nearest;

/// A program that runs nothing has no variables of its own.
#[cfg(not(feature = "process"))]
const RESERVED_VARIABLES: [&str; 0] = [];

/// A task of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskEntry {
    /// The name that it is run by.
    pub(crate) name: String,
    /// The program and its arguments; at least the program.
    pub(crate) command: Vec<Template>,
    /// The parameters in the order of the file.
    pub(crate) params: Vec<Parameter>,
    /// Each once, in the order of the file.
    pub(crate) tags: Vec<String>,
    /// What its bucket is computed from.
    pub(crate) bucket_key: Option<Template>,
    /// Higher goes first.
    pub(crate) priority: Option<i32>,
    /// When a failed attempt is followed by another.
    pub(crate) retry: Option<RetryPolicy>,
    /// Its time-outs.
    pub(crate) timeout: Option<Timeout>,
    /// How long a stop may take before it becomes a kill.
    pub(crate) grace: Option<Duration>,
    /// Where it runs, relative to the manifest.
    pub(crate) cwd: Option<PathBuf>,
    /// What is added to its environment.
    pub(crate) env: BTreeMap<String, Template>,
    /// How much of an attempt's output is kept.
    pub(crate) max_log_bytes: Option<u64>,
}

/// A parameter of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// The name, usable as `{name}`.
    pub(crate) name: String,
    /// The value when none is given; without one, a value must be given.
    pub(crate) default: Option<Value>,
    /// What it means.
    pub(crate) help: Option<String>,
}

pub(super) fn task(key: &Key<'_, '_>, node: &Node<'_, '_>) -> Option<TaskEntry> {
    let name = key.name();
    let fields = node.fields("a table with a `command`")?;

    // First the parameters: the templates are checked against them.
    let params = match fields.get("params") {
        Some(node) => parameters(&node),
        None => Some(Vec::new()),
    };
    let template = |node: &Node<'_, '_>| {
        let template = node.template()?;
        // When the parameters themselves are wrong, what uses them cannot be judged.
        params
            .as_deref()
            .is_none_or(|params| is_filled(node, &template, params))
            .then_some(template)
    };

    let command = fields.require("command", |node| {
        let command =
            node.list(template, "a list such as [\"echo\", \"hi\"] (no shell splits it)")?;
        if command.first().is_none_or(|program| program.source().is_empty()) {
            node.problem("names no program: write it first, as in [\"echo\", \"hi\"]");
            return None;
        }
        Some(command)
    });
    let bucket_key = fields.read("bucket_key", |node| {
        let key = template(node)?;
        if key.source().is_empty() {
            node.problem("is empty; leave it out for a task without a bucket");
        }
        Some(key)
    });
    let tags = fields.read("tags", tags).unwrap_or_default();
    let priority = fields.read("priority", |node| node.integer(i32::MIN));
    let retry = fields.read("retry", policy::retry);
    let timeout = fields.read("timeout", policy::timeout);
    let grace = fields.read("grace", Node::duration);
    let cwd = fields.read("cwd", path);
    let env = fields.read("env", |node| environment(node, template)).unwrap_or_default();
    let max_log_bytes = fields.read("max_log_bytes", |node| node.integer(0));
    fields.finish();
    Some(TaskEntry {
        name: name?,
        command: command?,
        params: params?,
        tags,
        bucket_key,
        priority,
        retry,
        timeout,
        grace,
        cwd,
        env,
        max_log_bytes,
    })
}

/// A path as the user wrote it.
pub(super) fn path(node: &Node<'_, '_>) -> Option<PathBuf> {
    let text = node.os_text()?;
    if text.is_empty() {
        node.problem("is empty; write `.` for the manifest's own folder");
        return None;
    }
    Some(PathBuf::from(text))
}

fn parameters(node: &Node<'_, '_>) -> Option<Vec<Parameter>> {
    let read: Vec<Option<Parameter>> =
        node.entries()?.map(|(key, node)| parameter(&key, &node)).collect();
    read.into_iter().collect()
}

fn parameter(key: &Key<'_, '_>, node: &Node<'_, '_>) -> Option<Parameter> {
    let name = key.name();
    if name.is_some() && !is_parameter_name(key.text) {
        key.problem("cannot be used as {name}: take letters, digits, `_` and `-`, no digit first");
    }
    let fields = node.fields("a table: {} for a needed one, { default = … } for another")?;
    let default = fields.read("default", Node::any);
    let help = fields.read("help", |node| node.string().map(str::to_owned));
    fields.finish();
    Some(Parameter { name: name?, default, help })
}

/// Whether every placeholder can be filled in; else it is reported.
fn is_filled(node: &Node<'_, '_>, template: &Template, params: &[Parameter]) -> bool {
    let names = || params.iter().map(|param| param.name.as_str());
    let mut filled = true;
    for placeholder in template.placeholders() {
        match placeholder {
            Placeholder::Parameter(name) => {
                let problem = match params.iter().find(|param| param.name == *name) {
                    Some(param) if param.default.as_ref().is_some_and(has_nul) => {
                        "whose default has a NUL character; remove it".to_owned()
                    }
                    Some(_) => continue,
                    None => {
                        let help = match nearest(name, names()) {
                            Some(near) => format!("did you mean {{{near}}}?"),
                            None => format!(
                                "add `{name} = {{}}` to `params`, or write `{{{{` for a brace"
                            ),
                        };
                        format!("which is no parameter; {help}")
                    }
                };
                node.problem(format!("uses {placeholder}, {problem}"));
                filled = false;
            }
            Placeholder::NodeValue(_) => {
                node.problem(format!(
                    "uses {placeholder}, which is for the args of a pipeline's node"
                ));
                filled = false;
            }
        }
    }
    filled
}

fn tags(node: &Node<'_, '_>) -> Option<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for tag in node.list(Node::tag, "a list of strings")? {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Some(tags)
}

fn environment(
    node: &Node<'_, '_>,
    template: impl Fn(&Node<'_, '_>) -> Option<Template>,
) -> Option<BTreeMap<String, Template>> {
    let mut environment = BTreeMap::new();
    for (key, node) in node.entries()? {
        if key.text.is_empty() || key.text.contains(['=', '\0']) {
            key.problem("is no name of an environment variable: it is empty or has `=` or NUL");
        }
        if RESERVED_VARIABLES.contains(&key.text) {
            key.problem("is reserved: the executor sets this variable itself; remove it");
        }
        if let Some(value) = template(&node) {
            environment.insert(key.text.to_owned(), value);
        }
    }
    Some(environment)
}
