//! A module's tasks as JSON: what a program answers when it is asked for them.

use std::num::NonZeroU32;
use std::time::Duration;

use chongming_core::{
    Backoff, Defaults, Param, Registry, RetryPolicy, TaskDefinition, Timeout, Value,
};
use serde::{Deserialize, Serialize};

use super::ModuleTask;
use crate::protocol::VERSION;

/// The answer.
#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    r#type: String,
    protocol: u64,
    #[serde(default)]
    tasks: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    params: Vec<ParamEntry>,
    #[serde(default)]
    priority: i32,
    retry: Option<RetryEntry>,
    #[serde(default)]
    timeout: TimeoutEntry,
    grace_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct ParamEntry {
    name: String,
    help: Option<String>,
    /// Present, also as null, when the argument may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    default: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct RetryEntry {
    max_attempts: NonZeroU32,
    #[serde(default)]
    backoff: BackoffEntry,
    retry_on: Option<Vec<String>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BackoffEntry {
    #[default]
    None,
    Fixed {
        delay_ms: u64,
    },
    Exponential {
        base_ms: u64,
        factor: f64,
        max_ms: u64,
        #[serde(default)]
        jitter: f64,
    },
}

#[derive(Default, Serialize, Deserialize)]
struct TimeoutEntry {
    start_ms: Option<u64>,
    per_attempt_ms: Option<u64>,
    idle_ms: Option<u64>,
}

/// What tells `null` from nothing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Answer {
    const TYPE: &'static str = "tasks";

    /// The tasks of this registry, as one line.
    pub(crate) fn line(registry: &Registry) -> String {
        let tasks = registry.iter().map(|definition| Entry::of(definition)).collect();
        let answer = Self { r#type: Self::TYPE.to_owned(), protocol: VERSION, tasks };
        // Strings, numbers and lists: nothing that could fail.
        let mut line = serde_json::to_string(&answer).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Reads the line; `None` when it is another message.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn parse(line: &[u8]) -> Result<Option<Vec<ModuleTask>>, String> {
        #[derive(Deserialize)]
        struct Head {
            r#type: String,
            protocol: Option<u64>,
        }
        let Ok(head) = serde_json::from_slice::<Head>(line) else { return Ok(None) };
        if head.r#type != Self::TYPE {
            return Ok(None);
        }
        if head.protocol != Some(VERSION) {
            return Err(format!(
                "it lists its tasks by version {} of the task protocol, but this is {VERSION}",
                head.protocol.map_or_else(|| "?".to_owned(), |version| version.to_string())
            ));
        }
        let answer: Self = serde_json::from_slice(line)
            .map_err(|error| format!("its list of tasks cannot be read: {error}"))?;
        answer.tasks.into_iter().map(Entry::into_task).collect::<Result<_, _>>().map(Some)
    }
}

impl Entry {
    fn of(definition: &TaskDefinition) -> Self {
        let Defaults { tags, retry, timeout, priority, grace } = definition.defaults().clone();
        Self {
            name: definition.name().to_owned(),
            tags: tags.iter().map(ToString::to_string).collect(),
            params: definition.params().iter().map(ParamEntry::of).collect(),
            priority,
            retry: Some(RetryEntry {
                max_attempts: retry.max_attempts,
                backoff: BackoffEntry::of(retry.backoff),
                retry_on: retry
                    .retry_on
                    .map(|kinds| kinds.iter().map(ToString::to_string).collect()),
            }),
            timeout: TimeoutEntry {
                start_ms: timeout.start.map(millis),
                per_attempt_ms: timeout.per_attempt.map(millis),
                idle_ms: timeout.idle.map(millis),
            },
            grace_ms: grace.map(millis),
        }
    }

    fn into_task(self) -> Result<ModuleTask, String> {
        let Self { name, tags, params, priority, retry, timeout, grace_ms } = self;
        let retry = match retry {
            None => RetryPolicy::default(),
            Some(RetryEntry { max_attempts, backoff, retry_on }) => RetryPolicy {
                max_attempts,
                backoff: backoff.into_backoff(),
                retry_on: retry_on
                    .map(|kinds| kinds.iter().map(|kind| kind.parse()).collect())
                    .transpose()
                    .map_err(|error: chongming_core::UnknownFailureKind| error.to_string())?,
            },
        };
        let TimeoutEntry { start_ms, per_attempt_ms, idle_ms } = timeout;
        Ok(ModuleTask {
            name: name.into(),
            params: params.into_iter().map(ParamEntry::into_param).collect(),
            defaults: Defaults {
                tags: tags.into_iter().map(Into::into).collect(),
                retry,
                timeout: Timeout {
                    start: start_ms.map(Duration::from_millis),
                    per_attempt: per_attempt_ms.map(Duration::from_millis),
                    idle: idle_ms.map(Duration::from_millis),
                },
                priority,
                grace: grace_ms.map(Duration::from_millis),
            },
        })
    }
}

impl ParamEntry {
    fn of(param: &Param) -> Self {
        Self {
            name: param.name.to_string(),
            help: param.help.as_ref().map(ToString::to_string),
            default: param.default.clone(),
        }
    }

    fn into_param(self) -> Param {
        Param { name: self.name.into(), help: self.help.map(Into::into), default: self.default }
    }
}

impl BackoffEntry {
    fn of(backoff: Backoff) -> Self {
        match backoff {
            Backoff::None => Self::None,
            Backoff::Fixed(delay) => Self::Fixed { delay_ms: millis(delay) },
            Backoff::Exponential { base, factor, max, jitter } => Self::Exponential {
                base_ms: millis(base),
                factor: finite(factor),
                max_ms: millis(max),
                jitter: finite(jitter),
            },
        }
    }

    fn into_backoff(self) -> Backoff {
        match self {
            Self::None => Backoff::None,
            Self::Fixed { delay_ms } => Backoff::Fixed(Duration::from_millis(delay_ms)),
            Self::Exponential { base_ms, factor, max_ms, jitter } => Backoff::Exponential {
                base: Duration::from_millis(base_ms),
                factor,
                max: Duration::from_millis(max_ms),
                jitter,
            },
        }
    }
}

/// Whole milliseconds. What is shorter than one counts as one: no time at all may mean something else.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// JSON has no NaN, which means the same as 0 here, and no infinity.
fn finite(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(f64::MIN, f64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{FailureKind, TaskContext, TaskError};

    fn definition(name: &str) -> TaskDefinition {
        TaskDefinition::new(name, |_: &TaskContext, ()| Ok::<(), TaskError>(()))
    }

    #[test]
    fn what_is_listed_is_read() {
        let plain = definition("a");
        let full = definition("b")
            .tag("x")
            .param(Param::required("tenant").help("whose data"))
            .param(Param::optional("day", Value::Null))
            .priority(-3)
            .grace(Duration::from_nanos(1))
            .retry(RetryPolicy {
                max_attempts: NonZeroU32::MAX,
                backoff: Backoff::Exponential {
                    base: Duration::MAX,
                    factor: f64::INFINITY,
                    max: Duration::ZERO,
                    jitter: f64::NAN,
                },
                retry_on: Some(vec![FailureKind::Panic]),
            })
            .timeout(Timeout { start: None, per_attempt: Some(Duration::MAX), idle: None });
        let mut registry = Registry::default();
        registry.register(plain.clone()).unwrap();
        registry.register(full.clone()).unwrap();
        let tasks = Answer::parse(Answer::line(&registry).as_bytes()).unwrap().unwrap();
        let mut expected = full.defaults().clone();
        expected.retry.backoff = Backoff::Exponential {
            base: Duration::from_millis(u64::MAX),
            factor: f64::MAX,
            max: Duration::ZERO,
            jitter: 0.0,
        };
        expected.timeout.per_attempt = Some(Duration::from_millis(u64::MAX));
        expected.grace = Some(Duration::from_millis(1));
        assert_eq!(tasks.len(), 2);
        assert_eq!((&*tasks[0].name, &tasks[0].defaults), ("a", plain.defaults()));
        assert_eq!((&*tasks[1].name, &tasks[1].defaults), ("b", &expected));
        assert_eq!(tasks[1].params, full.params());
    }

    /// As docs/task-protocol.md shows it.
    #[test]
    fn the_answer_is_as_documented() {
        let sync = definition("sync")
            .tag("io")
            .param(Param::required("tenant").help("whose data"))
            .param(Param::optional("day", Value::from("today")))
            .priority(5)
            .grace(Duration::from_secs(10))
            .retry(RetryPolicy {
                max_attempts: NonZeroU32::new(3).unwrap(),
                backoff: Backoff::Exponential {
                    base: Duration::from_secs(1),
                    factor: 2.0,
                    max: Duration::from_secs(60),
                    jitter: 0.5,
                },
                retry_on: Some(vec![FailureKind::Exception, FailureKind::Crashed]),
            })
            .timeout(Timeout {
                start: Some(Duration::from_secs(300)),
                per_attempt: Some(Duration::from_micros(1_500_001)),
                idle: None,
            });
        let mut registry = Registry::default();
        registry.register(sync).unwrap();
        let line = Answer::line(&registry);
        let page = include_str!("../../../../docs/task-protocol.md");
        assert!(page.contains(line.trim_end()), "{line}");
        assert!(Answer::parse(line.as_bytes()).unwrap().is_some());
        for backoff in [
            r#"{"type":"none"}"#,
            r#"{"type":"fixed","delay_ms":500}"#,
            r#"{"type":"exponential","base_ms":1,"factor":2,"max_ms":9}"#,
        ] {
            let line = format!(
                r#"{{"type":"tasks","protocol":1,"tasks":[{{"name":"a","retry":{{"max_attempts":2,"backoff":{backoff}}}}}]}}"#
            );
            assert!(Answer::parse(line.as_bytes()).is_ok_and(|tasks| tasks.is_some()), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_answer_and_bad_answers_are_told() {
        for line in ["", "noise", "{}", r#"{"type":"hello","protocol":1}"#] {
            assert!(matches!(Answer::parse(line.as_bytes()), Ok(None)), "{line}");
        }
        for line in [
            r#"{"type":"tasks","protocol":2}"#,
            r#"{"type":"tasks"}"#,
            r#"{"type":"tasks","protocol":1,"tasks":[{}]}"#,
            r#"{"type":"tasks","protocol":1,"tasks":[{"name":"a","grace_ms":1.5}]}"#,
            r#"{"type":"tasks","protocol":1,"tasks":[{"name":"a","timeout":{"idle_ms":-1}}]}"#,
            r#"{"type":"tasks","protocol":1,"tasks":[{"name":"a","retry":{"max_attempts":0}}]}"#,
        ] {
            assert!(Answer::parse(line.as_bytes()).is_err(), "{line}");
        }
        let least = r#"{"type":"tasks","protocol":1,"tasks":[{"name":"a"}]}"#;
        assert!(Answer::parse(least.as_bytes()).is_ok_and(|tasks| tasks.is_some()));
    }
}
