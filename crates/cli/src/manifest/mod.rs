//! Task manifests: a TOML file that gives names to commands and pipelines.
//!
//! A manifest is read whole and checked whole, before anything runs. What comes out is valid, and
//! what is wrong is told with file, line, column and key, all of it at once.

pub(crate) mod pipeline;
mod policy;
mod problem;
mod reader;
mod task;
pub(crate) mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use pipeline::{NodeEntry, PipelineEntry};
pub(crate) use problem::ManifestError;
pub(crate) use task::TaskEntry;

use crate::error::CliError;
use problem::{Problems, position};
use reader::Node;

/// A larger file is no manifest; somebody named a log or a device.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A manifest that was found valid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// The file it was read from.
    pub(crate) path: PathBuf,
    /// How many tasks run at a time.
    pub(crate) max_parallel: Option<NonZeroU32>,
    /// How many tasks of one bucket run at a time.
    pub(crate) max_parallel_per_bucket: Option<NonZeroU32>,
    /// The permits of each resource; a task takes one for each of its tags that names a resource.
    pub(crate) resources: BTreeMap<String, NonZeroU32>,
    /// Where logs and artifacts go, relative to the manifest.
    pub(crate) artifacts: Option<PathBuf>,
    /// In the order of the file.
    pub(crate) tasks: Vec<TaskEntry>,
    /// In the order of the file.
    pub(crate) pipelines: Vec<PipelineEntry>,
}

impl Manifest {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let unreadable = |why: &dyn std::fmt::Display| {
            CliError::new(format!("cannot read the task manifest {}: {why}", path.display()))
        };
        if let Some(what) = endless(path) {
            return Err(unreadable(&format_args!("it is {what}, which may have no end"))
                .hint("name a file; a manifest from a pipe is read from /dev/stdin"));
        }
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(unreadable(&"it is larger than 16 MiB"));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let (line, column) = position(error.as_bytes(), error.utf8_error().valid_up_to());
            unreadable(&format_args!("line {line}, column {column} is not UTF-8"))
        })?;
        Ok(Self::parse(path, &text)?)
    }

    /// Reads the text of a manifest; `path` is what errors name and relative paths start from.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ManifestError> {
        let problems = Problems::new(text);
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let span: Range<usize> = error.span().unwrap_or_default();
                problems.add(span, "", format!("not valid TOML: {}", error.message().trim_end()));
                return problems.settle(path, None);
            }
        };
        let span = root.span();
        let root = Spanned::new(span, DeValue::Table(root.into_inner()));
        let manifest = manifest(path, &Node::root(&root, &problems));
        problems.settle(path, manifest)
    }

    /// The task of that name.
    pub(crate) fn task(&self, name: &str) -> Result<&TaskEntry, CliError> {
        self.tasks.iter().find(|task| task.name == name).ok_or_else(|| {
            let names = self.tasks.iter().map(|task| task.name.as_str());
            CliError::new(format!("no task `{name}` in {}", self.path.display()))
                .hint_nearest(name, "tasks", names)
        })
    }

    /// The pipeline of that name.
    pub(crate) fn pipeline(&self, name: &str) -> Result<&PipelineEntry, CliError> {
        self.pipelines.iter().find(|pipeline| pipeline.name == name).ok_or_else(|| {
            let names = self.pipelines.iter().map(|pipeline| pipeline.name.as_str());
            CliError::new(format!("no pipeline `{name}` in {}", self.path.display())).hint_nearest(
                name,
                "pipelines",
                names,
            )
        })
    }

    /// The folder that the manifest's relative paths start from.
    pub(crate) fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

fn manifest(path: &Path, root: &Node<'_, '_>) -> Option<Manifest> {
    let fields = root.fields("a table")?;
    let max_parallel = fields.read("max_parallel", positive);
    let max_parallel_per_bucket = fields.read("max_parallel_per_bucket", positive);
    let resources = fields.read("resources", resources).unwrap_or_default();
    let artifacts = fields.read("artifacts", task::path);
    let tasks: Vec<Option<TaskEntry>> = fields
        .read("tasks", |node| {
            Some(node.entries()?.map(|(key, node)| task::task(&key, &node)).collect())
        })
        .unwrap_or_default();
    let pipelines: Vec<Option<PipelineEntry>> = fields
        .read("pipelines", |node| {
            let entries = node.entries()?;
            Some(entries.map(|(key, node)| pipeline::pipeline(&key, &node, &tasks)).collect())
        })
        .unwrap_or_default();
    fields.finish();
    Some(Manifest {
        path: path.to_owned(),
        max_parallel,
        max_parallel_per_bucket,
        resources,
        artifacts,
        tasks: tasks.into_iter().collect::<Option<_>>()?,
        pipelines: pipelines.into_iter().collect::<Option<_>>()?,
    })
}

/// A limit; none at all is said by leaving it out.
fn positive(node: &Node<'_, '_>) -> Option<NonZeroU32> {
    node.integer(1_u32).and_then(NonZeroU32::new)
}

fn resources(node: &Node<'_, '_>) -> Option<BTreeMap<String, NonZeroU32>> {
    let read: Vec<Option<(String, NonZeroU32)>> =
        node.entries()?.map(|(key, node)| Some((key.name()?, positive(&node)?))).collect();
    read.into_iter().collect()
}

/// What may keep its reader waiting for ever. A pipe that this process was given (`/dev/stdin`, `<(…)`) has
/// somebody at its other end; a named one may have nobody.
#[cfg(unix)]
fn endless(path: &Path) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;

    let kind = std::fs::metadata(path).ok()?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Some("a device");
    }
    // Only what has a name is found again under it.
    (kind.is_fifo() && std::fs::canonicalize(path).is_ok()).then_some("a named pipe")
}

#[cfg(not(unix))]
fn endless(_: &Path) -> Option<&'static str> {
    None
}
