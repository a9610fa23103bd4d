//! One task as it is to be run: its definition, and its submission.

use chongming_core::{Submit, TaskDefinition, TaskId, Value};

use super::definition::{bucket_key, definition, take_arguments};
use crate::args::running::RunningArgs;
use crate::arguments::Given;
use crate::error::CliError;
use crate::module::{Functions, TaskModule, function_arguments};

/// A task with its arguments.
pub(crate) struct Single {
    /// What it is.
    pub(crate) definition: TaskDefinition,
    /// How it is run.
    pub(crate) submit: Submit,
}

/// The task of this name, with what the command line gives.
pub(crate) fn prepare(
    module: &TaskModule<'_>,
    name: &str,
    given: &Given,
    id: Option<&TaskId>,
    running: &RunningArgs,
) -> Result<Single, CliError> {
    let (definition, args, own_key) = match module {
        TaskModule::Manifest(manifest) => {
            let entry = manifest.task(name)?;
            let arguments = take_arguments(entry, given.as_text()?)?;
            let key = match running.bucket_key {
                Some(_) => None,
                None => bucket_key(entry, &arguments)?,
            };
            (definition(manifest, entry, running.grace)?, Value::Map(arguments), key)
        }
        TaskModule::Executable(functions) => function(functions, name, given)?,
        TaskModule::Own(functions) => function(functions, name, given)?,
    };
    let mut submit = Submit::new(name).args(args);
    submit = running.tags.iter().fold(submit, |submit, tag| submit.tag(tag.as_str()));
    if let Some(id) = id {
        submit = submit.id(id.clone());
    }
    if let Some(label) = &running.label {
        submit = submit.label(label.as_str());
    }
    if let Some(key) = running.bucket_key.as_deref().or(own_key.as_deref()) {
        submit = submit.bucket_key(key);
    }
    if let Some(priority) = running.priority {
        submit = submit.priority(priority);
    }
    if let Some(grace) = running.grace {
        submit = submit.grace(grace);
    }
    Ok(Single { definition, submit })
}

/// A function has no bucket key of its own.
fn function(
    functions: &Functions,
    name: &str,
    given: &Given,
) -> Result<(TaskDefinition, Value, Option<String>), CliError> {
    let definition = functions.get(name)?;
    Ok((definition.clone(), function_arguments(definition, given)?, None))
}
