//! What a child is told, to and from JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use chongming_core::{Launch, Text, Value};
use serde::Deserialize;

use super::VERSION;

/// What a child is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Down {
    /// Always the first of a task.
    Start(Start),
    /// Asks a program for the tasks that it serves.
    List,
    Pause {
        epoch: u64,
    },
    Resume,
    Stop {
        reason: Text,
        grace: Duration,
    },
    /// A type that we do not know.
    Unknown,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) task_id: String,
    pub(crate) name: String,
    pub(crate) attempt: u32,
    pub(crate) args: Value,
    pub(crate) upstream: BTreeMap<String, Value>,
    pub(crate) artifact_dir: Option<String>,
}

impl Start {
    /// Of this launch, under this name.
    pub(crate) fn of(launch: &Launch, name: &str) -> Self {
        let upstream = launch.upstream.iter();
        Self {
            task_id: launch.task_id.as_str().to_owned(),
            name: name.to_owned(),
            attempt: launch.attempt,
            args: launch.args.clone(),
            upstream: upstream.map(|(node, value)| (node.to_string(), value.clone())).collect(),
            artifact_dir: launch
                .files
                .as_ref()
                .map(|files| files.artifact_dir.to_string_lossy().into_owned()),
        }
    }
}

#[derive(Deserialize)]
struct Raw {
    r#type: String,
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    upstream: BTreeMap<String, Value>,
    artifact_dir: Option<String>,
    #[serde(default)]
    epoch: u64,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    grace_ms: u64,
}

impl Down {
    /// Reads one line.
    ///
    /// # Errors
    /// Says why the line is no message.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_slice(line);
        // Values have their own limit, which counts from the value on.
        json.disable_recursion_limit();
        let raw = Raw::deserialize(&mut json).map_err(|error| error.to_string())?;
        json.end().map_err(|error| error.to_string())?;
        let Raw { task_id, name, attempt, args, upstream, artifact_dir, .. } = raw;
        Ok(match raw.r#type.as_str() {
            "start" => Self::Start(Start { task_id, name, attempt, args, upstream, artifact_dir }),
            "list" => Self::List,
            "pause" => Self::Pause { epoch: raw.epoch },
            "resume" => Self::Resume,
            "stop" => {
                Self::Stop { reason: raw.reason.into(), grace: Duration::from_millis(raw.grace_ms) }
            }
            _ => Self::Unknown,
        })
    }

    /// The line that says it.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Start(start) => start.encode(),
            Self::List => format!("{{\"type\":\"list\",\"protocol\":{VERSION}}}\n"),
            Self::Pause { epoch } => format!("{{\"type\":\"pause\",\"epoch\":{epoch}}}\n"),
            Self::Resume => "{\"type\":\"resume\"}\n".to_owned(),
            Self::Stop { reason, grace } => format!(
                "{{\"type\":\"stop\",\"reason\":{},\"grace_ms\":{}}}\n",
                string(reason),
                u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)
            ),
            Self::Unknown => "{\"type\":\"unknown\"}\n".to_owned(),
        }
    }
}

impl Start {
    fn encode(&self) -> String {
        format!(
            "{{\"type\":\"start\",\"protocol\":{VERSION},\"task_id\":{},\"name\":{},\"attempt\":{},\"args\":{},\"upstream\":{},\"artifact_dir\":{}}}\n",
            string(&self.task_id),
            string(&self.name),
            self.attempt,
            self.args,
            Value::Map(self.upstream.clone()),
            self.artifact_dir.as_deref().map_or(Value::Null, string),
        )
    }
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let deep = (0..128).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        let start = Start {
            task_id: "t".to_owned(),
            name: "a \"b\"".to_owned(),
            attempt: 3,
            args: deep.clone(),
            upstream: BTreeMap::from([("n".to_owned(), deep)]),
            artifact_dir: Some("/a".to_owned()),
        };
        for message in [
            Down::Start(start),
            Down::List,
            Down::Pause { epoch: 7 },
            Down::Resume,
            Down::Stop { reason: "no\n".into(), grace: Duration::from_millis(5) },
        ] {
            assert_eq!(Down::parse(message.encode().as_bytes()), Ok(message));
        }
        let endless = Down::Stop { reason: "".into(), grace: Duration::MAX };
        assert!(Down::parse(endless.encode().as_bytes()).is_ok());
        assert!(Down::parse(b"{}").is_err());
    }
}
