//! What the core knows, as commands show it: JSON twins with stable keys, and rows and fields for
//! people. The core's own types are not serialised; the format of the output is this crate's affair.

pub(crate) mod alert;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod node;
pub(crate) mod pipeline;
pub(crate) mod reconciled;
pub(crate) mod task;
pub(crate) mod transition;

use chongming_core::Timestamp;
use serde::Serializer;

/// A number without a fraction as an integer: `3`, not `3.0`.
fn plain_number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    /// Up to here every whole float is exactly the integer that it shows.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

fn optional_plain_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => plain_number(number, serializer),
        None => serializer.serialize_none(),
    }
}

/// RFC 3339 with microseconds in UTC.
fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

#[cfg(test)]
pub(crate) mod samples {
    use chongming_core::{
        Failure, FailureKind, IncarnationId, Progress, Status, TaskId, TaskSnapshot, Timestamp,
    };

    /// Seconds after an arbitrary start.
    pub(crate) fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros((1_790_000_000 + seconds) * 1_000_000)
    }

    /// A task that was only submitted.
    pub(crate) fn fresh(id: &str) -> TaskSnapshot {
        TaskSnapshot::pending(TaskId::new(id).unwrap(), "sync", "node-a".into(), at(0))
    }

    /// A task with something in every field.
    pub(crate) fn full(id: &str) -> TaskSnapshot {
        let mut task = fresh(id);
        task.label = Some("evil\x1b[31m\nlabel".into());
        task.attempt = 2;
        task.max_attempts = 3;
        task.bucket = Some(7);
        task.bucket_key = Some("tenant-A".into());
        task.tags = ["gpu".into(), "io".into()].into();
        task.priority = -1;
        task.progress = Some(Box::new(Progress {
            done: 3.0,
            total: Some(4.5),
            unit: Some("rows".into()),
            message: None,
        }));
        let message = "exited with 7\nlast words";
        task.failure = Some(Box::new(Failure::new(FailureKind::ExitCode, message)));
        task.supervisor = Some(IncarnationId::new("i-1").unwrap());
        task.queued_at = Some(at(1));
        task.started_at = Some(at(2));
        task.attempt_started_at = Some(at(5));
        task.ended_at = Some(at(9));
        task.updated_at = at(9);
        task.restored(Status::Failed, 9)
    }
}
