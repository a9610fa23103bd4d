//! One task: the object of `ps`, `status` and `run`, the row of `ps`, the page of `status`.

use chongming_core::{Failure, Progress, TaskSnapshot, Timestamp, Value};
use serde::Serialize;

use super::{optional_plain_number, plain_number, time};
use crate::duration;
use crate::output::escape::{visible, visible_lines};
use crate::output::progress::{bar, summary};
use crate::output::table::{Cell, Column, Table};

/// A task as JSON; the order and the names of the keys are stable.
#[derive(Debug, Serialize)]
pub(crate) struct TaskJson<'a> {
    task_id: &'a str,
    name: &'a str,
    label: Option<&'a str>,
    status: &'static str,
    status_version: u64,
    attempt: u32,
    max_attempts: u32,
    bucket: Option<u32>,
    bucket_key: Option<&'a str>,
    tags: Vec<&'a str>,
    priority: i32,
    progress: Option<ProgressJson<'a>>,
    failure: Option<FailureJson<'a>>,
    value: Option<&'a Value>,
    owner: &'a str,
    supervisor: Option<&'a str>,
    lease_until: Option<String>,
    created_at: String,
    queued_at: Option<String>,
    started_at: Option<String>,
    attempt_started_at: Option<String>,
    ended_at: Option<String>,
    last_heartbeat_at: Option<String>,
    updated_at: String,
}

#[derive(Debug, Serialize)]
struct ProgressJson<'a> {
    #[serde(serialize_with = "plain_number")]
    done: f64,
    #[serde(serialize_with = "optional_plain_number")]
    total: Option<f64>,
    unit: Option<&'a str>,
    message: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct FailureJson<'a> {
    kind: &'static str,
    message: &'a str,
    retryable: bool,
}

impl<'a> From<&'a TaskSnapshot> for TaskJson<'a> {
    fn from(task: &'a TaskSnapshot) -> Self {
        Self {
            task_id: task.id.as_str(),
            name: &task.name,
            label: task.label.as_deref(),
            status: task.status().as_str(),
            status_version: task.status_version(),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            bucket: task.bucket,
            bucket_key: task.bucket_key.as_deref(),
            tags: task.tags.iter().map(|tag| &**tag).collect(),
            priority: task.priority,
            progress: task.progress.as_deref().map(ProgressJson::from),
            failure: task.failure.as_deref().map(FailureJson::from),
            value: task.value.as_deref(),
            owner: &task.owner,
            supervisor: task.supervisor.as_ref().map(|incarnation| incarnation.as_str()),
            lease_until: time(task.lease_until),
            created_at: task.created_at.to_string(),
            queued_at: time(task.queued_at),
            started_at: time(task.started_at),
            attempt_started_at: time(task.attempt_started_at),
            ended_at: time(task.ended_at),
            last_heartbeat_at: time(task.last_heartbeat_at),
            updated_at: task.updated_at.to_string(),
        }
    }
}

impl<'a> From<&'a Progress> for ProgressJson<'a> {
    fn from(progress: &'a Progress) -> Self {
        Self {
            done: progress.done,
            total: progress.total,
            unit: progress.unit.as_deref(),
            message: progress.message.as_deref(),
        }
    }
}

impl<'a> From<&'a Failure> for FailureJson<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self {
            kind: failure.kind.as_str(),
            message: &failure.message,
            retryable: failure.retryable,
        }
    }
}

/// The table of `ps`.
pub(crate) fn table<'a>(
    tasks: impl IntoIterator<Item = &'a TaskSnapshot>,
    now: Timestamp,
) -> Table<8> {
    let mut table = Table::new([
        Column::key("TASK_ID"),
        Column::text("NAME"),
        Column::key("BUCKET"),
        Column::key("STATUS"),
        Column::key("ATTEMPT"),
        Column::key("ELAPSED"),
        Column::text("PROGRESS"),
        Column::text("FAILURE"),
    ]);
    for task in tasks {
        table.row([
            task.id.as_str().into(),
            (&*task.name).into(),
            task.bucket.map(|bucket| bucket.to_string()).unwrap_or_default().into(),
            Cell::status(task.status()),
            attempt(task).into(),
            elapsed(task, now).unwrap_or_default().into(),
            task.progress.as_deref().map(summary).unwrap_or_default().into(),
            task.failure.as_deref().map(headline).unwrap_or_default().into(),
        ]);
    }
    table
}

/// The page of `status`: what there is to say, with its name.
pub(crate) fn fields(task: &TaskSnapshot, now: Timestamp) -> Vec<(&'static str, String)> {
    let text = |text: &Option<chongming_core::Text>| text.as_deref().map(str::to_owned);
    let status = format!("{} (version {})", task.status(), task.status_version());
    let bucket = task.bucket.map(|bucket| bucket.to_string());
    let tags = (!task.tags.is_empty()).then(|| task.tags.join(", "));
    let failure = task.failure.as_deref().map(|failure| {
        let retried = if failure.retryable { "" } else { " (not retryable)" };
        format!("{}{retried}: {}", failure.kind, failure.message)
    });
    let holder = task.supervisor.as_ref().map(|incarnation| incarnation.to_string());
    let fields = [
        ("task_id", Some(task.id.to_string())),
        ("name", Some(task.name.to_string())),
        ("label", text(&task.label)),
        ("status", Some(status)),
        ("attempt", Some(attempt(task))),
        ("bucket", bucket),
        ("bucket_key", text(&task.bucket_key)),
        ("tags", tags),
        ("priority", Some(task.priority.to_string())),
        ("progress", task.progress.as_deref().map(summary)),
        ("failure", failure),
        ("value", task.value.as_deref().map(Value::to_string)),
        ("owner", Some(task.owner.to_string())),
        ("supervisor", holder),
        ("lease_until", time(task.lease_until)),
        ("created_at", Some(task.created_at.to_string())),
        ("queued_at", time(task.queued_at)),
        ("started_at", time(task.started_at)),
        ("attempt_started_at", time(task.attempt_started_at)),
        ("ended_at", time(task.ended_at)),
        ("last_heartbeat_at", time(task.last_heartbeat_at)),
        ("updated_at", Some(task.updated_at.to_string())),
        ("elapsed", elapsed(task, now)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What `run` and `wait` say about a task in the end: one line, and what it returned or why it failed.
pub(crate) fn summary_lines(task: &TaskSnapshot, now: Timestamp) -> Vec<String> {
    let after = elapsed(task, now).map(|elapsed| format!(" after {elapsed}")).unwrap_or_default();
    let mut lines = vec![format!(
        "{} {}{after} (attempt {})",
        visible(task.id.as_str()),
        task.status(),
        attempt(task)
    )];
    if let Some(failure) = task.failure.as_deref() {
        let text = format!("{}: {}", failure.kind, failure.message);
        lines.extend(visible_lines(&text).lines().map(|line| format!("  {line}")));
    }
    if let Some(value) = task.value.as_deref().filter(|value| **value != Value::Null) {
        lines.push(format!("  value: {}", visible(&value.to_string())));
    }
    lines
}

/// One line about a task that goes on: what it does, and how far it has come.
pub(crate) fn live_line(task: &TaskSnapshot, now: Timestamp, columns: usize) -> String {
    let elapsed = elapsed(task, now).map(|elapsed| format!(" {elapsed}")).unwrap_or_default();
    let head = format!("{} {}{elapsed}", visible(task.id.as_str()), task.status());
    match task.progress.as_deref() {
        Some(progress) => format!("{head} {}", bar(progress, columns)),
        None => head,
    }
}

pub(super) fn attempt(task: &TaskSnapshot) -> String {
    format!("{}/{}", task.attempt, task.max_attempts)
}

/// How long it has run since its body first did, or did run; none for what never ran.
pub(super) fn elapsed(task: &TaskSnapshot, now: Timestamp) -> Option<String> {
    let started = task.started_at?;
    Some(duration::short(task.ended_at.unwrap_or(now).since(started)))
}

/// The kind and the first line of the message, which may carry pages of output.
pub(super) fn headline(failure: &Failure) -> String {
    format!("{}: {}", failure.kind, failure.message.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples::{at, fresh, full};
    use serde_json::json;

    #[test]
    fn json_has_every_key_of_the_snapshot() {
        assert_eq!(
            json!(TaskJson::from(&full("t"))),
            json!({
                "task_id": "t", "name": "sync", "label": "evil\u{1b}[31m\nlabel",
                "status": "failed", "status_version": 9, "attempt": 2, "max_attempts": 3,
                "bucket": 7, "bucket_key": "tenant-A", "tags": ["gpu", "io"], "priority": -1,
                "progress": {"done": 3, "total": 4.5, "unit": "rows", "message": null},
                "failure": {
                    "kind": "exit_code", "message": "exited with 7\nlast words", "retryable": true,
                },
                "value": null, "owner": "node-a", "supervisor": "i-1", "lease_until": null,
                "created_at": "2026-09-21T14:13:20.000000Z",
                "queued_at": "2026-09-21T14:13:21.000000Z",
                "started_at": "2026-09-21T14:13:22.000000Z",
                "attempt_started_at": "2026-09-21T14:13:25.000000Z",
                "ended_at": "2026-09-21T14:13:29.000000Z",
                "last_heartbeat_at": null,
                "updated_at": "2026-09-21T14:13:29.000000Z",
            })
        );
    }

    #[test]
    fn values_keep_their_64_bits() {
        let mut task = fresh("t");
        task.value = Some(Box::new(Value::from(u64::MAX)));
        let text = serde_json::to_string(&TaskJson::from(&task)).unwrap();
        assert!(text.contains("\"value\":18446744073709551615"), "{text}");
    }

    #[test]
    fn a_row_has_a_dash_for_what_is_not() {
        let lines = table([&full("t"), &fresh("u")], at(60)).lines(None, false);
        assert_eq!(
            lines,
            [
                "TASK_ID  NAME  BUCKET  STATUS   ATTEMPT  ELAPSED  PROGRESS    FAILURE",
                "t        sync  7       failed   2/3      7.0s     3/4.5 rows  exit_code: exited with 7",
                "u        sync  -       pending  0/1      -        -           -",
            ]
        );
    }

    #[test]
    fn the_page_leaves_out_what_is_not() {
        let names = |task: &TaskSnapshot| -> Vec<&str> {
            fields(task, at(60)).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(&fresh("u")),
            [
                "task_id",
                "name",
                "status",
                "attempt",
                "priority",
                "owner",
                "created_at",
                "updated_at"
            ]
        );
        assert!(names(&full("t")).contains(&"failure"));
    }

    #[test]
    fn a_summary_tells_why_it_failed_and_what_it_returned() {
        assert_eq!(
            summary_lines(&full("t\u{202e}"), at(60)),
            [
                "t\\u{202e} failed after 7.0s (attempt 2/3)",
                "  exit_code: exited with 7",
                "  last words"
            ]
        );
        let mut task = fresh("t");
        task.value = Some(Box::new(Value::from("a\x1b")));
        assert_eq!(
            summary_lines(&task, at(60)),
            ["t pending (attempt 0/1)", "  value: \"a\\u001b\""]
        );
    }

    #[test]
    fn a_live_line_has_a_bar_when_there_is_progress() {
        assert_eq!(live_line(&fresh("t"), at(3), 80), "t pending");
        assert_eq!(
            live_line(&full("t"), at(3), 80),
            "t failed 7.0s [#############·······]  66% 3/4.5 rows"
        );
    }

    #[test]
    fn a_stepped_clock_never_shows_a_negative_time() {
        let mut task = fresh("t");
        task.started_at = Some(at(10));
        assert_eq!(elapsed(&task, at(0)).as_deref(), Some("0ms"));
    }
}
