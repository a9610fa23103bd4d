//! The messages, to and from JSON.

use std::time::Duration;

use chongming_core::{Failure, FailureKind, Launch, Progress, Text, Value, clean};
use serde::Deserialize;

/// The version that we speak.
const VERSION: u64 = 1;

/// What a child says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Up {
    Hello {
        stop: bool,
        pause: bool,
    },
    Checkpoint,
    Progress(Progress),
    Log {
        level: String,
        message: String,
    },
    Paused {
        epoch: Option<u64>,
    },
    Result(Value),
    Failure(Failure),
    /// A type that we do not know.
    Unknown,
}

#[derive(Deserialize)]
struct Raw {
    r#type: String,
    #[serde(default)]
    protocol: u64,
    #[serde(default)]
    handles: Vec<String>,
    done: Option<f64>,
    total: Option<f64>,
    unit: Option<String>,
    message: Option<String>,
    level: Option<String>,
    epoch: Option<u64>,
    #[serde(default)]
    value: Value,
    retryable: Option<bool>,
}

impl Up {
    /// Reads one line. The value of a result may be nested as deep as any other value.
    ///
    /// # Errors
    /// Says why the line is no message.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err("it is no JSON object".to_owned());
        }
        let mut json = serde_json::Deserializer::from_slice(line);
        // `Value` has its own limit, which counts from the value on; nothing else nests.
        json.disable_recursion_limit();
        let raw = Raw::deserialize(&mut json).map_err(|error| error.to_string())?;
        json.end().map_err(|error| error.to_string())?;
        let text = |text: Option<String>| text.map(|text| clean(&text));
        Ok(match raw.r#type.as_str() {
            "hello" if raw.protocol == VERSION => {
                let handles = |what: &str| raw.handles.iter().any(|one| one == what);
                Self::Hello { stop: handles("stop"), pause: handles("pause") }
            }
            "hello" => {
                return Err(format!(
                    "it asks for protocol {}, but this is {VERSION}",
                    raw.protocol
                ));
            }
            "checkpoint" => Self::Checkpoint,
            "progress" => Self::Progress(Progress {
                done: raw.done.ok_or("progress without `done`")?,
                total: raw.total,
                unit: text(raw.unit),
                message: text(raw.message),
            }),
            "log" => Self::Log {
                level: raw.level.unwrap_or_else(|| "info".to_owned()),
                message: raw.message.unwrap_or_default(),
            },
            "paused" => Self::Paused { epoch: raw.epoch },
            "result" => Self::Result(raw.value),
            "failure" => {
                let message =
                    raw.message.unwrap_or_else(|| "the command said that it failed".into());
                let failure = Failure::new(FailureKind::Exception, message);
                Self::Failure(match raw.retryable {
                    Some(false) => failure.permanent(),
                    Some(true) | None => failure,
                })
            }
            _ => Self::Unknown,
        })
    }
}

/// What a child is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Down {
    Pause { epoch: u64 },
    Resume,
    Stop { reason: Text, grace: Duration },
}

impl Down {
    /// One line.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Pause { epoch } => format!("{{\"type\":\"pause\",\"epoch\":{epoch}}}\n"),
            Self::Resume => "{\"type\":\"resume\"}\n".to_owned(),
            Self::Stop { reason, grace } => format!(
                "{{\"type\":\"stop\",\"reason\":{},\"grace_ms\":{}}}\n",
                string(reason),
                grace.as_millis()
            ),
        }
    }
}

/// The first line.
pub(crate) fn start(launch: &Launch) -> String {
    let upstream =
        launch.upstream.iter().map(|(node, value)| (node.to_string(), value.clone())).collect();
    let artifact_dir = launch.files.as_ref().map_or(Value::Null, |files| {
        Value::String(files.artifact_dir.to_string_lossy().into_owned())
    });
    format!(
        "{{\"type\":\"start\",\"protocol\":{VERSION},\"task_id\":{},\"name\":{},\"attempt\":{},\"args\":{},\"upstream\":{},\"artifact_dir\":{artifact_dir}}}\n",
        string(launch.task_id.as_str()),
        string(&launch.name),
        launch.attempt,
        launch.args,
        Value::Map(upstream),
    )
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Up, String> {
        Up::parse(line.as_bytes())
    }

    #[test]
    fn messages_are_read() {
        let failure = |text| Failure::new(FailureKind::Exception, text);
        for (line, message) in [
            (
                r#"{"type":"hello","protocol":1,"handles":["stop","dance"]}"#,
                Up::Hello { stop: true, pause: false },
            ),
            (r#" {"type":"checkpoint","more":[[{}]]} "#, Up::Checkpoint),
            (
                r#"{"type":"progress","done":1,"unit":"rows"}"#,
                Up::Progress(Progress {
                    done: 1.0,
                    total: None,
                    unit: Some("rows".into()),
                    message: None,
                }),
            ),
            (
                r#"{"type":"log","message":"hi"}"#,
                Up::Log { level: "info".into(), message: "hi".into() },
            ),
            (r#"{"type":"paused"}"#, Up::Paused { epoch: None }),
            (r#"{"type":"result"}"#, Up::Result(Value::Null)),
            (
                r#"{"value":18446744073709551615,"type":"result"}"#,
                Up::Result(Value::UInt(u64::MAX)),
            ),
            (r#"{"type":"failure","message":"no"}"#, Up::Failure(failure("no"))),
            (
                r#"{"type":"failure","message":"no","retryable":false}"#,
                Up::Failure(failure("no").permanent()),
            ),
            (r#"{"type":"dance"}"#, Up::Unknown),
        ] {
            assert_eq!(parse(line), Ok(message), "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for line in [
            "",
            "hello",
            r#"["result",1]"#,
            r#"{"type":"result","value":NaN}"#,
            r#"{"type":"result","value":1e999}"#,
            r#"{"type":"result","value":1} x"#,
            r#"{"type":"progress"}"#,
            r#"{"type":"hello","protocol":2}"#,
            r#"{"value":1}"#,
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(Up::parse(b"{\"type\":\"log\",\"message\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_result_nests_128_levels_and_no_deeper() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            parse(&format!("{{\"type\":\"result\",\"value\":{open}{close}}}"))
        };
        assert!(nested(128).is_ok());
        assert!(nested(129).is_err());
        assert!(nested(1_000_000).is_err());
        let deep = "[".repeat(1_000_000);
        assert!(parse(&format!("{{\"type\":\"log\",\"other\":{deep}")).is_err());
    }
}
