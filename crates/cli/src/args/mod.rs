//! The command line as it is written: global options, shared groups of options, and how it is read.
//!
//! A command's own options stand in its file under `commands/`; the doc comment of their struct is
//! the help text.

pub(crate) mod control;
pub(crate) mod global;
pub(crate) mod running;
pub(crate) mod values;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::database::redact;
use crate::output::escape::{visible, visible_lines};
use global::GlobalArgs;

/// Runs tasks, keeps the truth about them, and lets you see and control them from anywhere.
#[derive(Debug, Parser)]
#[command(
    name = "chongming-task",
    version,
    after_help = "Exit codes: 0 done; 1 the command itself failed; \
                  3 the command worked, but the task that it ran or asked about did not succeed."
)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A command line that names nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Help or version was asked for: this is the answer, for stdout.
    Answer(String),
    /// It is wrong: this says how, for stderr.
    BadUsage(String),
}

/// Reads a command line, the program's name first.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Stop> {
    let args: Vec<OsString> = args.into_iter().collect();
    let matches = Cli::command().try_get_matches_from(&args);
    let cli = matches.and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.global.settle_verbosity(&matches);
        Ok(cli)
    });
    cli.map_err(|mut error| {
        if let Some(variable) = variable_of(&error, &args) {
            let tip = format!("the value stands in the environment variable {variable}");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        make_values_visible(&mut error);
        // Plain text: a wrong value is repeated in it, and colours could not be told from its own.
        let mut text = error.render().to_string();
        if error.kind() == ClapErrorKind::InvalidUtf8 {
            let bad = not_utf8(&args, std::env::vars_os());
            text = format!("error: only paths may be other than UTF-8: {bad}\n");
        }
        match error.kind() {
            ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => Stop::Answer(text),
            _ => Stop::BadUsage(visible_lines(&redact(&text)).into_owned()),
        }
    })
}

/// Which variable a wrong value is from: the parser names the option, which nobody may have typed.
fn variable_of(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    let (option, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
    let command = Cli::command();
    // Such as `--num-buckets <N>` and `--verbose...`.
    let option = option.split_whitespace().next()?.trim_end_matches('.');
    let long = option.strip_prefix("--")?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let is_typed = args.iter().any(|typed| {
        let typed = typed.to_string_lossy();
        typed.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    });
    let name = arg.get_env()?.to_str()?;
    let is_in_variable = std::env::var_os(name).is_some_and(|set| set.to_string_lossy() == *value);
    (is_in_variable && !is_typed).then(|| name.to_owned())
}

/// Which values are meant when one is not UTF-8: the parser does not tell.
fn not_utf8(args: &[OsString], variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    let typed = args.iter().filter(|arg| arg.to_str().is_none()).map(|arg| format!("{arg:?}"));
    let variables = variables.filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| name.starts_with("CHONGMING_"))?;
        value.to_str().is_none().then(|| format!("{name}={value:?}"))
    });
    typed.chain(variables).collect::<Vec<_>>().join(", ")
}

/// What was typed is repeated in messages: a line end in it must not look like a line of ours.
fn make_values_visible(error: &mut clap::Error) {
    let typed: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => {
                Some((kind, ContextValue::String(visible(text).into_owned())))
            }
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| visible(text).into_owned());
                Some((kind, ContextValue::Strings(texts.collect())))
            }
            // Everything else is our own, or a number.
            _ => None,
        })
        .collect();
    for (kind, value) in typed {
        error.insert(kind, value);
    }
}

#[cfg(test)]
mod tests;
