//! A manifest's task as a definition: its command is filled in anew for each attempt, from the arguments of
//! the submission.

use std::path::PathBuf;
use std::time::Duration;

use chongming_core::{Launch, TaskDefinition, Value};
use chongming_executor_process::{Command, CommandTemplate, DEFAULT_MAX_LOG_BYTES};

use crate::arguments::{self, Accepted, Arguments};
use crate::error::CliError;
use crate::manifest::template::{Placeholder, Template};
use crate::manifest::{Manifest, TaskEntry};
use crate::open_store::absolute;

/// Time that a stop may take, unless the task or the command line says otherwise.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// The definition of a task; `grace` is what the command line says in place of the task.
pub(crate) fn definition(
    manifest: &Manifest,
    entry: &TaskEntry,
    grace: Option<Duration>,
) -> Result<TaskDefinition, CliError> {
    let filling = Filling {
        entry: entry.clone(),
        cwd: absolute(&match &entry.cwd {
            Some(cwd) => manifest.folder().join(cwd),
            None => manifest.folder().to_owned(),
        })?,
        grace: grace.or(entry.grace).unwrap_or(DEFAULT_GRACE),
    };
    let target = CommandTemplate::new(move |launch| filling.command(launch)).into_target();
    let mut definition = TaskDefinition::external(entry.name.as_str(), target);
    definition = entry.tags.iter().fold(definition, |definition, tag| definition.tag(tag.as_str()));
    if let Some(retry) = &entry.retry {
        definition = definition.retry(retry.clone());
    }
    if let Some(timeout) = entry.timeout {
        definition = definition.timeout(timeout);
    }
    if let Some(priority) = entry.priority {
        definition = definition.priority(priority);
    }
    if let Some(grace) = entry.grace {
        definition = definition.grace(grace);
    }
    Ok(definition)
}

/// Gives each parameter of a task its value.
pub(crate) fn take_arguments(
    entry: &TaskEntry,
    given: impl IntoIterator<Item = (String, Value)>,
) -> Result<Arguments, CliError> {
    let accepted = entry
        .params
        .iter()
        .map(|param| Accepted { name: &param.name, default: param.default.as_ref() });
    let arguments = arguments::resolve(&entry.name, accepted, given)?;
    let filled = entry.command.iter().chain(entry.env.values()).flat_map(Template::placeholders);
    for placeholder in filled {
        if let Placeholder::Parameter(name) = placeholder
            && arguments.get(name).is_some_and(arguments::has_nul)
        {
            return Err(CliError::new(format!(
                "argument `{name}` of task `{}` has a NUL character, which no command can be given",
                entry.name
            ))
            .hint("remove it"));
        }
    }
    Ok(arguments)
}

/// The bucket key that a task makes of its arguments.
pub(crate) fn bucket_key(
    entry: &TaskEntry,
    arguments: &Arguments,
) -> Result<Option<String>, CliError> {
    let key = entry.bucket_key.as_ref().map(|key| fill(key, arguments)).transpose();
    key.map_err(CliError::internal)
}

/// What a command is filled in from.
struct Filling {
    entry: TaskEntry,
    cwd: PathBuf,
    grace: Duration,
}

impl Filling {
    fn command(&self, launch: &Launch) -> Result<Command, String> {
        let Value::Map(arguments) = &launch.args else {
            return Err(format!("the arguments of `{}` are no map", self.entry.name));
        };
        let entry = &self.entry;
        let argv: Result<Vec<String>, String> =
            entry.command.iter().map(|part| fill(part, arguments)).collect();
        let env: Result<Vec<(String, String)>, String> = entry
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(value, arguments)?)))
            .collect();
        Ok(Command {
            env: env?,
            cwd: self.cwd.clone(),
            grace: self.grace,
            max_log_bytes: entry.max_log_bytes.unwrap_or(DEFAULT_MAX_LOG_BYTES),
            ..Command::new(argv?)
        })
    }
}

/// A template with a task's arguments.
pub(crate) fn fill(template: &Template, arguments: &Arguments) -> Result<String, String> {
    let value = |placeholder: &Placeholder| match placeholder {
        Placeholder::Parameter(name) => arguments.get(name).map(arguments::text),
        Placeholder::NodeValue(_) => None,
    };
    template
        .fill(value)
        .map_err(|missing| format!("{missing} in {:?} has no value", template.source()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{AttemptSink, Report, Target, TaskId};
    use std::path::Path;
    use std::sync::Arc;

    struct Nobody;
    impl AttemptSink for Nobody {
        fn report(&self, _: Report) {}

        fn may_begin(&self) -> bool {
            true
        }
    }

    fn launch(args: Value) -> Launch {
        Launch {
            task_id: TaskId::new("t").unwrap(),
            name: "sync".into(),
            attempt: 1,
            target: Target::External(Arc::new(())),
            args,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Nobody),
        }
    }

    fn filling(text: &str) -> Filling {
        let manifest = Manifest::parse(Path::new("m.toml"), text).unwrap();
        let entry = manifest.tasks[0].clone();
        Filling { entry, cwd: "/w".into(), grace: DEFAULT_GRACE }
    }

    #[test]
    fn a_command_is_filled_in_from_the_arguments_of_its_submission() {
        let filling = filling(
            "[tasks.sync]\ncommand = ['say', '{x}', 'a{x}{{b}}']\nparams = { x = {}, y = { default = 2 } }\n\
             env = { Y = '{y}' }\nbucket_key = 'k{x}'\nmax_log_bytes = 5000\n",
        );
        let entry = &filling.entry;
        let arguments = take_arguments(entry, [("x".to_owned(), "{y}; rm".into())]).unwrap();
        assert_eq!(bucket_key(entry, &arguments).unwrap().as_deref(), Some("k{y}; rm"));
        let command = filling.command(&launch(Value::Map(arguments))).unwrap();
        assert_eq!(command.argv, ["say", "{y}; rm", "a{y}; rm{b}"]);
        assert_eq!(command.env, [("Y".to_owned(), "2".to_owned())]);
        assert_eq!((command.cwd.as_path(), command.max_log_bytes), (Path::new("/w"), 5000));
    }

    #[test]
    fn arguments_that_no_command_can_be_given_are_refused_before_it_is_submitted() {
        let nul: Value = "a\0b".into();
        for (keys, is_refused) in [
            ("command = ['say', 'x{x}']", true),
            ("command = ['say']\nenv = { X = '{x}' }", true),
            // It goes to the program as JSON.
            ("command = ['say']", false),
        ] {
            let text = format!("[tasks.t]\n{keys}\nparams = {{ x = {{}} }}\n");
            let taken = take_arguments(&filling(&text).entry, [("x".to_owned(), nul.clone())]);
            let told = taken.err().map(|error| error.message);
            let names = |told: &String| told.contains("argument `x` of task `t` has a NUL");
            assert_eq!(told.as_ref().map(names), is_refused.then_some(true), "{keys}: {told:?}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_fail_the_launch() {
        let filling = filling("[tasks.t]\ncommand = ['say', '{x}']\nparams = { x = {} }\n");
        for args in [Value::Null, Value::Map(Arguments::new())] {
            assert!(filling.command(&launch(args)).is_err());
        }
    }
}
