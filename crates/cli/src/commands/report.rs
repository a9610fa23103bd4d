//! `report`: a task that runs as a command speaks to its supervisor, one message of the task protocol at a
//! time (docs/task-protocol.md).

use std::io::Read;

use chongming_core::Value;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::args::values;
use crate::arguments;
use crate::error::CliError;

/// Speak to the supervisor, from within a task: one message of the task protocol.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// What is said.
    #[command(subcommand)]
    pub(crate) message: ReportMessage,
}

/// The messages of a task.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ReportMessage {
    /// I take part: from now on only a checkpoint is a sign of life
    Hello {
        /// What I do myself when I read of it, instead of by signals; may be repeated
        #[arg(long, value_name = "WHAT", value_delimiter = ',')]
        handles: Vec<Handled>,
    },
    /// I am alive
    Checkpoint,
    /// How far I am
    Progress {
        /// How much is done
        #[arg(value_name = "DONE", allow_negative_numbers = true, value_parser = values::number)]
        done: f64,
        /// Of how much
        #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = values::number)]
        total: Option<f64>,
        /// Of what
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::lossy())]
        unit: Option<String>,
        /// Doing what
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::lossy())]
        message: Option<String>,
    },
    /// A line for the attempt's log
    Log {
        /// How bad it is
        #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
        level: Level,
        /// The line
        #[arg(value_name = "TEXT", allow_hyphen_values = true, value_parser = values::lossy())]
        text: String,
    },
    /// I have suspended myself, as I was told to
    Paused {
        /// The number that the pause came with
        #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::integer(0..=u64::MAX))]
        epoch: Option<u64>,
    },
    /// My result; the last one counts, if I exit with 0
    Result {
        /// The result as JSON; - reads it from stdin
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        /// It is text, whatever it looks like
        #[arg(long)]
        text: bool,
    },
    /// I failed, whatever I exit with
    Failure {
        /// Why
        #[arg(value_name = "WHY", allow_hyphen_values = true, value_parser = values::lossy())]
        why: String,
        /// Another attempt would fail as well: there shall be none
        #[arg(long)]
        permanent: bool,
    },
}

/// What a task can do itself.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Handled {
    /// End, when told to stop.
    Stop,
    /// Suspend itself, when told to pause.
    Pause,
}

/// How bad a line of the log is.
#[derive(Clone, Copy, Debug, Default, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// For the author.
    Debug,
    /// For whoever reads along.
    #[default]
    Info,
    /// Something to look at.
    Warn,
    /// Something went wrong.
    Error,
}

/// A line of the protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Hello {
        protocol: u8,
        handles: &'a [Handled],
    },
    Checkpoint,
    Progress {
        done: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    Log {
        level: Level,
        message: &'a str,
    },
    Paused {
        #[serde(skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
    },
    Result {
        value: Value,
    },
    Failure {
        message: &'a str,
        retryable: bool,
    },
}

impl ReportMessage {
    /// Its line. The result of a task may be read from `input`.
    fn line(&self, input: &mut dyn Read) -> Result<String, CliError> {
        let line = match self {
            Self::Hello { handles } => Line::Hello { protocol: 1, handles },
            Self::Checkpoint => Line::Checkpoint,
            Self::Progress { done, total, unit, message } => Line::Progress {
                done: *done,
                total: *total,
                unit: unit.as_deref(),
                message: message.as_deref(),
            },
            Self::Log { level, text } => Line::Log { level: *level, message: text },
            Self::Paused { epoch } => Line::Paused { epoch: *epoch },
            Self::Result { value, text } => Line::Result { value: result(value, *text, input)? },
            Self::Failure { why, permanent } => {
                Line::Failure { message: why, retryable: !permanent }
            }
        };
        let line = serde_json::to_string(&line);
        line.map(|line| line + "\n").map_err(|error| CliError::internal(error.to_string()))
    }
}

/// The result as it was meant. What only looks like JSON is refused: a number would turn into a text without
/// a word, from one run to the next.
fn result(value: &str, is_text: bool, input: &mut dyn Read) -> Result<Value, CliError> {
    let mut piped = String::new();
    let value = match value {
        "-" => {
            input.read_to_string(&mut piped).map_err(|error| {
                CliError::new(format!("cannot read the result from stdin: {error}"))
            })?;
            piped.as_str()
        }
        value => value,
    };
    if is_text {
        return Ok(value.into());
    }
    arguments::parse_value(value).map_err(|why| {
        CliError::new(format!("the result is no JSON that a task can return: {why}"))
            .hint("add --text to return it as text")
    })
}

/// Says it. Neither database nor buckets matter here: the supervisor has looked at its own.
#[cfg(feature = "process")]
pub(super) fn execute(args: &ReportArgs) -> Result<u8, CliError> {
    let mut channel = crate::task_channel::TaskChannel::of_process()?;
    let line = args.message.line(&mut std::io::stdin().lock())?;
    channel.write_line(line.as_bytes())?;
    Ok(crate::exit_codes::DONE)
}

/// Says that this build cannot.
#[cfg(not(feature = "process"))]
pub(super) fn execute(_: &ReportArgs) -> Result<u8, CliError> {
    Err(CliError::without_feature("report", "process"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, parse};
    use crate::commands::Command;

    fn line(words: &[&str], input: &str) -> Result<String, CliError> {
        let words = ["chongming-task", "report"].iter().chain(words).map(|word| (*word).into());
        let Cli { command: Command::Report(args), .. } = parse(words).unwrap() else {
            panic!("report")
        };
        args.message.line(&mut input.as_bytes())
    }

    #[test]
    fn each_message_is_one_line_of_the_protocol() {
        for (words, expected) in [
            (&["hello"][..], r#"{"type":"hello","protocol":1,"handles":[]}"#),
            (
                &["hello", "--handles", "stop,pause"],
                r#"{"type":"hello","protocol":1,"handles":["stop","pause"]}"#,
            ),
            (&["checkpoint"], r#"{"type":"checkpoint"}"#),
            (&["progress", "3"], r#"{"type":"progress","done":3.0}"#),
            (
                &["progress", "3", "--total", "10", "--unit", "files", "--message", "-x\n\0"],
                r#"{"type":"progress","done":3.0,"total":10.0,"unit":"files","message":"-x\n\u0000"}"#,
            ),
            (&["log", "a \"b\"\nc"], r#"{"type":"log","level":"info","message":"a \"b\"\nc"}"#),
            (&["log", "--level", "warn", "-"], r#"{"type":"log","level":"warn","message":"-"}"#),
            (&["paused"], r#"{"type":"paused"}"#),
            (&["paused", "--epoch", "2"], r#"{"type":"paused","epoch":2}"#),
            (&["result", "42"], r#"{"type":"result","value":42}"#),
            (&["result", "-1.5"], r#"{"type":"result","value":-1.5}"#),
            (
                &["result", r#"{"b": [18446744073709551615]}"#],
                r#"{"type":"result","value":{"b":[18446744073709551615]}}"#,
            ),
            (&["result", "42", "--text"], r#"{"type":"result","value":"42"}"#),
            (&["result", "-"], r#"{"type":"result","value":["piped"]}"#),
            (&["result", "--text", "-"], r#"{"type":"result","value":"[\"piped\"]\n"}"#),
            (&["failure", "no"], r#"{"type":"failure","message":"no","retryable":true}"#),
            (
                &["failure", "no", "--permanent"],
                r#"{"type":"failure","message":"no","retryable":false}"#,
            ),
        ] {
            assert_eq!(line(words, "[\"piped\"]\n").unwrap(), format!("{expected}\n"), "{words:?}");
        }
    }

    #[test]
    fn a_result_that_is_no_json_is_refused_and_not_guessed_at() {
        for value in ["hello", "", "NaN", "1e999", "99999999999999999999", "[1", "1 2"] {
            let error = line(&["result", value], "").unwrap_err();
            assert!(error.hints.iter().any(|hint| hint.contains("--text")), "{value}: {error}");
        }
    }
}
