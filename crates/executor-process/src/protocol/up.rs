//! What a child says, to and from JSON.

use chongming_core::{Failure, FailureKind, Progress, Text, Value, clean, integer_beyond_64_bits};
use serde::Deserialize;

/// Longest texts that a child can hand in, in bytes; a longer one is cut, and says so.
const MAX_FAILURE: usize = 16 * 1024;
const MAX_LOG: usize = 64 * 1024;
const MAX_PROGRESS: usize = 1024;
const MAX_WORD: usize = 64;

/// What a child says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Up {
    Hello {
        /// The version that it speaks.
        protocol: Option<u64>,
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
    protocol: Option<u64>,
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
    kind: Option<String>,
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
        Ok(match raw.r#type.as_str() {
            "hello" => {
                let handles = |what: &str| raw.handles.iter().any(|one| one == what);
                let (stop, pause) = (handles("stop"), handles("pause"));
                Self::Hello { protocol: raw.protocol, stop, pause }
            }
            "checkpoint" => Self::Checkpoint,
            "progress" => Self::Progress(Progress {
                done: raw.done.ok_or("progress without `done`")?,
                total: raw.total,
                unit: raw.unit.map(|unit| text(unit, MAX_WORD)),
                message: raw.message.map(|message| text(message, MAX_PROGRESS)),
            }),
            "log" => Self::Log {
                level: raw
                    .level
                    .map_or_else(|| "info".to_owned(), |level| shorten(level, MAX_WORD)),
                message: shorten(raw.message.unwrap_or_default(), MAX_LOG),
            },
            "paused" => Self::Paused { epoch: raw.epoch },
            "result" => Self::Result(exact(raw.value, line)?),
            "failure" => {
                let message =
                    raw.message.unwrap_or_else(|| "the command said that it failed".into());
                let kind = raw.kind.as_deref().map_or(FailureKind::Exception, failure_kind);
                let failure = Failure::new(kind, shorten(message, MAX_FAILURE));
                Self::Failure(match raw.retryable {
                    Some(false) => failure.permanent(),
                    Some(true) | None => failure,
                })
            }
            _ => Self::Unknown,
        })
    }

    /// The line that says it.
    pub(crate) fn encode(&self) -> String {
        let (kind, fields) = match self {
            Self::Hello { protocol, stop, pause } => {
                let words = [("stop", *stop), ("pause", *pause)];
                let words =
                    words.into_iter().filter(|(_, does)| *does).map(|(word, _)| string(word));
                let handles = ("handles", Value::List(words.collect()));
                ("hello", vec![number("protocol", *protocol), Some(handles)])
            }
            Self::Checkpoint => ("checkpoint", vec![]),
            Self::Progress(Progress { done, total, unit, message }) => {
                let words = [("unit", unit), ("message", message)];
                let words = words.map(|(key, text)| Some((key, string(text.as_deref()?))));
                let total = total.map(|total| ("total", Value::Float(total)));
                (
                    "progress",
                    [Some(("done", Value::Float(*done))), total].into_iter().chain(words).collect(),
                )
            }
            Self::Log { level, message } => (
                "log",
                vec![
                    Some(("level", string(level))),
                    Some(("message", string(&shorten(message.clone(), MAX_LOG)))),
                ],
            ),
            Self::Paused { epoch } => ("paused", vec![number("epoch", *epoch)]),
            Self::Result(value) => ("result", vec![Some(("value", value.clone()))]),
            Self::Failure(failure) => (
                "failure",
                vec![
                    Some(("kind", string(failure.kind.as_str()))),
                    Some(("message", string(&shorten(failure.message.to_string(), MAX_FAILURE)))),
                    Some(("retryable", Value::Bool(failure.retryable))),
                ],
            ),
            Self::Unknown => ("unknown", vec![]),
        };
        let mut line = format!("{{\"type\":\"{kind}\"");
        for (key, value) in fields.into_iter().flatten() {
            line.push_str(&format!(",\"{key}\":{value}"));
        }
        line.push_str("}\n");
        line
    }
}

/// The value of this line, unless the reader has rounded an integer in it.
fn exact(value: Value, line: &[u8]) -> Result<Value, String> {
    match std::str::from_utf8(line).ok().and_then(integer_beyond_64_bits) {
        Some(number) => Err(format!("the integer {number} has more than 64 bits")),
        None => Ok(value),
    }
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn number(key: &'static str, number: Option<u64>) -> Option<(&'static str, Value)> {
    number.map(|number| (key, Value::from(number)))
}

/// The kinds that a child may give itself; the others are for its supervisor to say.
fn failure_kind(word: &str) -> FailureKind {
    match word.parse() {
        Ok(
            kind @ (FailureKind::Panic | FailureKind::ResultInvalid | FailureKind::LaunchFailed),
        ) => kind,
        Ok(
            FailureKind::Exception
            | FailureKind::TimeoutStart
            | FailureKind::TimeoutAttempt
            | FailureKind::TimeoutIdle
            | FailureKind::ExitCode
            | FailureKind::Crashed
            | FailureKind::Lost,
        )
        | Err(_) => FailureKind::Exception,
    }
}

fn text(text: String, max: usize) -> Text {
    clean(&shorten(text, max))
}

/// At most `max` bytes of a text, with a mark where it was cut.
fn shorten(mut text: String, max: usize) -> String {
    const MARK: &str = "… (cut)";
    if text.len() > max {
        let mut end = max.saturating_sub(MARK.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
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
                Up::Hello { protocol: Some(1), stop: true, pause: false },
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
            r#"{"type":"result","value":[18446744073709551616]}"#,
            r#"{"type":"result","value":1} x"#,
            r#"{"type":"progress"}"#,
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

    #[test]
    fn what_is_written_is_read() {
        for message in [
            Up::Hello { protocol: Some(1), stop: true, pause: true },
            Up::Hello { protocol: None, stop: false, pause: false },
            Up::Checkpoint,
            Up::Progress(Progress {
                done: 0.1,
                total: Some(2.0),
                unit: None,
                message: Some("\n\"".into()),
            }),
            Up::Log { level: "info".to_owned(), message: "a\0b\u{1}".to_owned() },
            Up::Paused { epoch: Some(u64::MAX) },
            Up::Result(Value::List(vec![
                Value::Float(0.1 + 0.2),
                Value::Float(-0.0),
                Value::UInt(u64::MAX),
            ])),
            Up::Failure(Failure::new(FailureKind::Panic, "boom")),
            Up::Failure(Failure::new(FailureKind::ResultInvalid, "NaN")),
            Up::Failure(Failure::new(FailureKind::Exception, "no").permanent()),
        ] {
            assert_eq!(parse(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = "ä".repeat(1_000_000);
        let Ok(Up::Failure(failure)) =
            parse(&format!(r#"{{"type":"failure","message":"{long}"}}"#))
        else {
            panic!("a failure");
        };
        assert!(failure.message.len() <= MAX_FAILURE && failure.message.ends_with("ä… (cut)"));
        let line = format!(r#"{{"type":"progress","done":1,"unit":"{long}","message":"{long}"}}"#);
        let Ok(Up::Progress(progress)) = parse(&line) else { panic!("progress") };
        assert!(progress.unit.unwrap().len() <= MAX_WORD);
        assert!(progress.message.unwrap().len() <= MAX_PROGRESS);
        let line = format!(r#"{{"type":"log","level":"{long}","message":"{long}"}}"#);
        let Ok(Up::Log { level, message }) = parse(&line) else { panic!("log") };
        assert!(level.len() <= MAX_WORD && message.len() <= MAX_LOG);
        assert_eq!(shorten("short".to_owned(), 5), "short");
    }

    #[test]
    fn a_child_cannot_claim_what_only_its_supervisor_knows() {
        for kind in ["lost", "crashed", "timeout_idle", "dance"] {
            let line = format!(r#"{{"type":"failure","message":"no","kind":"{kind}"}}"#);
            let failure = Failure::new(FailureKind::Exception, "no");
            assert_eq!(parse(&line), Ok(Up::Failure(failure)));
        }
    }
}
