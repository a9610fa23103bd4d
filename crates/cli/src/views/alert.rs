//! What is wrong with a deployment: the alerts of `doctor`.

use chongming_core::Alert;
use serde::Serialize;

use crate::output::color::Tone;
use crate::output::table::{Cell, Column, Table};

/// The object of `doctor`.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorJson<'a> {
    alerts: Vec<AlertJson<'a>>,
}

/// An alert as JSON: its kind, its text, and what both speak of.
#[derive(Debug, Serialize)]
struct AlertJson<'a> {
    kind: &'static str,
    message: String,
    #[serde(flatten)]
    subject: Subject<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Subject<'a> {
    Overlap { buckets: &'a [u32], owners: Vec<&'a str> },
    Twice { owner: &'a str, incarnations: Vec<&'a str> },
    Mismatch { num_buckets: Vec<u32>, stored: Option<u32> },
    Unowned { bucket: u32, tasks: u64 },
    Orphan { task_id: &'a str, status: &'static str, owner: &'a str, supervisor: Option<&'a str> },
}

impl<'a> From<&'a Alert> for Subject<'a> {
    fn from(alert: &'a Alert) -> Self {
        match alert {
            Alert::BucketOverlap { buckets, owners } => Self::Overlap {
                buckets: buckets.as_slice(),
                owners: owners.iter().map(|owner| &**owner).collect(),
            },
            Alert::OwnerTwice { owner, incarnations } => Self::Twice {
                owner,
                incarnations: incarnations.iter().map(|life| life.as_str()).collect(),
            },
            Alert::NumBucketsMismatch { counts, stored } => {
                Self::Mismatch { num_buckets: counts.keys().copied().collect(), stored: *stored }
            }
            Alert::BucketUnowned { bucket, tasks } => {
                Self::Unowned { bucket: *bucket, tasks: *tasks }
            }
            Alert::OrphanTask { task_id, status, owner, supervisor, unchanged_since: _ } => {
                Self::Orphan {
                    task_id: task_id.as_str(),
                    status: status.as_str(),
                    owner,
                    supervisor: supervisor.as_ref().map(|life| life.as_str()),
                }
            }
        }
    }
}

impl<'a> From<&'a [Alert]> for DoctorJson<'a> {
    fn from(alerts: &'a [Alert]) -> Self {
        let alert = |alert: &'a Alert| AlertJson {
            kind: alert.kind(),
            message: alert.to_string(),
            subject: alert.into(),
        };
        Self { alerts: alerts.iter().map(alert).collect() }
    }
}

/// The table of `doctor`.
pub(crate) fn table<'a>(alerts: impl IntoIterator<Item = &'a Alert>) -> Table<2> {
    let mut table = Table::new([Column::key("ALERT"), Column::text("MESSAGE")]);
    for alert in alerts {
        table.row([Cell::toned(alert.kind(), Tone::Bad), alert.to_string().into()]);
    }
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::views::samples::at;
    use chongming_core::{IncarnationId, Status, TaskId};
    use serde_json::json;

    /// One of each kind.
    pub(crate) fn one_of_each() -> Vec<Alert> {
        let life = |id: &str| IncarnationId::new(id).unwrap();
        vec![
            Alert::BucketOverlap {
                buckets: "7,9".parse().unwrap(),
                owners: ["node-a".into(), "node-b".into()],
            },
            Alert::OwnerTwice { owner: "node-a".into(), incarnations: vec![life("1"), life("2")] },
            Alert::NumBucketsMismatch {
                counts: [(32, ["node-c".into()].into()), (64, ["node-a".into()].into())].into(),
                stored: Some(64),
            },
            Alert::BucketUnowned { bucket: 7, tasks: 2 },
            Alert::OrphanTask {
                task_id: TaskId::new("t").unwrap(),
                status: Status::Running,
                owner: "node-a".into(),
                supervisor: Some(life("1")),
                unchanged_since: at(0),
            },
        ]
    }

    #[test]
    fn each_kind_has_what_it_speaks_of() {
        let json = json!(DoctorJson::from(&*one_of_each()));
        let alerts = json["alerts"].as_array().unwrap();
        let subjects: Vec<serde_json::Value> = alerts
            .iter()
            .map(|alert| {
                let mut alert = alert.as_object().unwrap().clone();
                assert!(!alert.remove("message").unwrap().as_str().unwrap().is_empty());
                alert.into()
            })
            .collect();
        assert_eq!(
            json!(subjects),
            json!([
                {"kind": "bucket-overlap", "buckets": [7, 9], "owners": ["node-a", "node-b"]},
                {"kind": "owner-twice", "owner": "node-a", "incarnations": ["1", "2"]},
                {"kind": "num-buckets-mismatch", "num_buckets": [32, 64], "stored": 64},
                {"kind": "bucket-unowned", "bucket": 7, "tasks": 2},
                {
                    "kind": "orphan-task", "task_id": "t", "status": "running", "owner": "node-a",
                    "supervisor": "1",
                },
            ])
        );
    }

    #[test]
    fn people_get_the_message() {
        let lines = table(&one_of_each()).lines(None, false);
        assert_eq!(lines.len(), 6);
        assert!(lines[1].starts_with("bucket-overlap        buckets 7,9 "), "{lines:?}");
    }
}
