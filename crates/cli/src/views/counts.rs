//! How many tasks there are: `stats` and `buckets`.

use std::collections::BTreeMap;

use chongming_core::store::Count;
use chongming_core::{Ownership, Status};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::output::table::{Cell, Column, Table};

/// Tasks by status; every status has a number, most of them 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByStatus([u64; Status::ALL.len()]);

impl ByStatus {
    fn add(&mut self, status: Status, tasks: u64) {
        let place = Status::ALL.iter().position(|known| *known == status);
        if let Some(number) = place.and_then(|place| self.0.get_mut(place)) {
            *number += tasks;
        }
    }

    /// The statuses with their numbers, in the order of the documentation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Status, u64)> {
        Status::ALL.into_iter().zip(self.0)
    }

    /// All tasks.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// `running 2, failed 1`.
    fn summary(&self) -> String {
        let there = self.iter().filter(|(_, tasks)| *tasks > 0);
        there.map(|(status, tasks)| format!("{status} {tasks}")).collect::<Vec<_>>().join(", ")
    }
}

impl FromIterator<(Status, u64)> for ByStatus {
    fn from_iter<I: IntoIterator<Item = (Status, u64)>>(numbers: I) -> Self {
        let mut sums = Self::default();
        numbers.into_iter().for_each(|(status, tasks)| sums.add(status, tasks));
        sums
    }
}

impl Serialize for ByStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (status, tasks) in self.iter() {
            map.serialize_entry(status.as_str(), &tasks)?;
        }
        map.end()
    }
}

/// The object of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stats {
    total: u64,
    by_status: ByStatus,
}

/// Sums up what a store counted.
pub(crate) fn stats(counts: &[Count]) -> Stats {
    let by_status: ByStatus = counts.iter().map(|count| (count.status, count.tasks)).collect();
    Stats { total: by_status.total(), by_status }
}

impl Stats {
    /// The table of `stats`: the statuses that occur, and the total.
    pub(crate) fn table(&self) -> Table<2> {
        let mut table = Table::new([Column::key("STATUS"), Column::key("TASKS")]);
        for (status, tasks) in self.by_status.iter().filter(|(_, tasks)| *tasks > 0) {
            table.row([Cell::status(status), tasks.to_string().into()]);
        }
        table.row(["total".into(), self.total.to_string().into()]);
        table
    }
}

/// An element of `buckets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BucketRow {
    /// None for the tasks without a bucket.
    bucket: Option<u32>,
    owned: bool,
    total: u64,
    by_status: ByStatus,
}

/// A row for each bucket of the store, and one for the tasks without a bucket if there are any.
pub(crate) fn buckets(counts: &[Count], ownership: &Ownership) -> Vec<BucketRow> {
    let mut sums: BTreeMap<Option<u32>, ByStatus> = (0..ownership.num_buckets().get())
        .map(|bucket| (Some(bucket), ByStatus::default()))
        .collect();
    for count in counts {
        sums.entry(count.bucket).or_default().add(count.status, count.tasks);
    }
    let row = |(bucket, by_status): (Option<u32>, ByStatus)| BucketRow {
        bucket,
        owned: match bucket {
            Some(bucket) => ownership.owns_bucket(bucket),
            None => ownership.owns_all_buckets(),
        },
        total: by_status.total(),
        by_status,
    };
    sums.into_iter().map(row).collect()
}

/// The table of `buckets`: those with tasks, and those that this node declares to own.
pub(crate) fn bucket_table(rows: &[BucketRow], ownership: &Ownership) -> Table<4> {
    let mut table = Table::new([
        Column::key("BUCKET"),
        Column::key("OWNED"),
        Column::key("TASKS"),
        Column::text("BY_STATUS"),
    ]);
    for row in rows {
        let declared = ownership.declared().is_some() && row.owned;
        if row.total == 0 && !declared {
            continue;
        }
        table.row([
            row.bucket.map(|bucket| bucket.to_string()).unwrap_or_default().into(),
            if declared { "*" } else { "" }.into(),
            row.total.to_string().into(),
            row.by_status.summary().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::DEFAULT_NUM_BUCKETS;
    use serde_json::json;

    fn counts() -> Vec<Count> {
        [
            (Some(7), Status::Running, 2),
            (Some(7), Status::Failed, 1),
            (Some(28), Status::Running, 1),
            (None, Status::Queued, 4),
        ]
        .map(|(bucket, status, tasks)| Count { bucket, status, tasks })
        .to_vec()
    }

    fn owning(buckets: Option<&str>) -> Ownership {
        let owned = buckets.map(|buckets| buckets.parse().unwrap());
        Ownership::new(DEFAULT_NUM_BUCKETS, owned).unwrap()
    }

    #[test]
    fn stats_sum_over_all_buckets() {
        let stats = stats(&counts());
        let json = json!(stats);
        assert_eq!(json["total"], 8);
        assert_eq!(json["by_status"]["running"], 3);
        assert_eq!(json["by_status"]["lost"], 0);
        assert_eq!(json["by_status"].as_object().unwrap().len(), 15);
        assert_eq!(
            stats.table().lines(None, false),
            ["STATUS   TASKS", "queued   4", "running  3", "failed   1", "total    8"]
        );
    }

    #[test]
    fn every_bucket_has_a_row_and_owned_ones_a_star() {
        let ownership = owning(Some("7,9"));
        let rows = buckets(&counts(), &ownership);
        assert_eq!(rows.len(), 65);
        let json = json!(rows);
        assert_eq!(json[0]["bucket"], json!(null));
        assert_eq!((&json[8]["bucket"], &json[8]["owned"]), (&json!(7), &json!(true)));
        assert_eq!((&json[29]["bucket"], &json[29]["owned"]), (&json!(28), &json!(false)));
        assert_eq!(
            bucket_table(&rows, &ownership).lines(None, false),
            [
                "BUCKET  OWNED  TASKS  BY_STATUS",
                "-       -      4      queued 4",
                "7       *      3      running 2, failed 1",
                "9       *      0      -",
                "28      -      1      running 1",
            ]
        );
    }

    #[test]
    fn who_declares_nothing_owns_all_without_stars() {
        let ownership = owning(None);
        let rows = buckets(&counts(), &ownership);
        assert!(rows.iter().all(|row| row.owned));
        let lines = bucket_table(&rows, &ownership).lines(None, false);
        assert!(lines.len() == 4 && lines.iter().all(|line| !line.contains('*')), "{lines:?}");
    }
}
