//! Where tasks come from: a manifest of commands, an executable that serves Rust functions, or the program that
//! this command line is part of (spec 14, 15).

use std::fs;
use std::path::Path;

use chongming_core::{Registry, TaskDefinition, Value};

use crate::arguments::{self, Accepted, Given};
use crate::error::CliError;
use crate::manifest::Manifest;

/// The tasks that a command works with.
pub(crate) enum TaskModule<'a> {
    /// Commands.
    Manifest(Manifest),
    /// Rust functions of an executable.
    Executable(Functions),
    /// Rust functions of this program.
    Own(&'a Functions),
}

/// Rust functions by name.
#[derive(Debug)]
pub(crate) struct Functions {
    /// What they are told apart by in messages.
    pub(crate) origin: String,
    /// The functions.
    pub(crate) registry: Registry,
}

impl TaskModule<'_> {
    /// The module of this path: an executable, unless its name or its rights say that it is text.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        if is_executable(path) {
            return executable(path).map(Self::Executable);
        }
        Manifest::load(path).map(Self::Manifest)
    }

    /// The manifest, for what only a manifest has.
    #[cfg(feature = "process")]
    pub(crate) fn manifest(self, what: &str) -> Result<Manifest, CliError> {
        let none = |functions: &Functions| {
            let error = format!("there is no {what} in {}: it has tasks only", functions.origin);
            Err(CliError::new(error).hint("name a manifest with --tasks FILE.toml"))
        };
        match self {
            Self::Manifest(manifest) => Ok(manifest),
            Self::Executable(functions) => none(&functions),
            Self::Own(functions) => none(functions),
        }
    }
}

impl Functions {
    /// The function of this name.
    pub(crate) fn get(&self, name: &str) -> Result<&TaskDefinition, CliError> {
        self.registry.get(name).map(|definition| &**definition).ok_or_else(|| {
            let names = self.registry.iter().map(|definition| definition.name());
            CliError::new(format!("no task `{name}` in {}", self.origin))
                .hint_nearest(name, "tasks", names)
        })
    }
}

/// What a function gets. One that names its parameters gets a map of them; any other takes what it is given.
pub(crate) fn function_arguments(
    definition: &TaskDefinition,
    given: &Given,
) -> Result<Value, CliError> {
    let params = definition.params();
    if params.is_empty() && given.pairs.is_empty() {
        return match &given.json {
            None => Ok(Value::Null),
            Some(json) => arguments::parse_value(json).map_err(|why| {
                CliError::new(format!("--args-json is no JSON that a task can be given: {why}"))
            }),
        };
    }
    let mut named = Vec::new();
    for (name, text) in &given.pairs {
        named.push((name.clone(), arguments::json_or_text(name, text)?));
    }
    named.extend(given.object()?);
    if params.is_empty() {
        return arguments::once_each(named).map(Value::Map);
    }
    let accepted =
        params.iter().map(|param| Accepted { name: &param.name, default: param.default.as_ref() });
    arguments::resolve(definition.name(), accepted, named).map(Value::Map)
}

/// A text file on a disk that knows no rights is executable too, so the name of a manifest decides.
fn is_executable(path: &Path) -> bool {
    let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    !is_toml && fs::metadata(path).is_ok_and(|found| found.is_file() && has_rights(&found))
}

#[cfg(unix)]
fn has_rights(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;

    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn has_rights(_: &fs::Metadata) -> bool {
    false
}

/// Asks an executable for its tasks. They run in children of it, in the folder of now.
#[cfg(feature = "process")]
fn executable(path: &Path) -> Result<Functions, CliError> {
    use chongming_executor_process::Command;
    use chongming_executor_process::module::{LIST_LIMIT, list};

    use crate::open_store::absolute;

    let path = absolute(path)?;
    let folder = absolute(Path::new("."))?;
    let program = path.to_str().ok_or_else(|| {
        CliError::new(format!("the path of the task module {} is not UTF-8", path.display()))
    })?;
    let tasks = list(&path, LIST_LIMIT).map_err(|error| {
        CliError::new(error.to_string()).hint(
            "a manifest of commands is a file whose name ends in .toml, or that is not executable",
        )
    })?;
    let definitions = tasks.iter().map(|task| {
        let command = Command::serving(program, &*task.name);
        task.definition(Command { cwd: folder.clone(), ..command })
    });
    functions(program.to_owned(), definitions)
}

#[cfg(not(feature = "process"))]
fn executable(path: &Path) -> Result<Functions, CliError> {
    let what = format_args!("ask {} for its tasks", path.display());
    Err(CliError::without_feature(what, "process"))
}

/// Functions that come from `origin`; two of one name are an error.
pub(crate) fn functions(
    origin: String,
    definitions: impl IntoIterator<Item = TaskDefinition>,
) -> Result<Functions, CliError> {
    let mut registry = Registry::default();
    for definition in definitions {
        let registered = registry.register(definition);
        registered.map_err(|error| CliError::new(format!("the tasks of {origin}: {error}")))?;
    }
    Ok(Functions { origin, registry })
}
