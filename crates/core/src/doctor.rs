//! What is wrong with a deployment (spec 12): a pure judgement, and the reading that it needs. Changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::bucket::BucketSet;
use crate::id::{IncarnationId, TaskId};
use crate::snapshot::TaskSnapshot;
use crate::status::{Status, StatusSet};
use crate::store::{
    Count, FACT_NUM_BUCKETS, NodeRow, Now, StoreError, TaskFilter, TaskQuery, TaskStore,
};
use crate::text::Text;
use crate::time::Timestamp;

/// One thing that is wrong. Its text says what, where and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// Two owners declare a partition and share buckets, both alive.
    BucketOverlap {
        /// What they share.
        buckets: BucketSet,
        /// The two.
        owners: [Text; 2],
    },
    /// One owner lives more than once.
    OwnerTwice {
        /// The owner.
        owner: Text,
        /// Its living incarnations.
        incarnations: Vec<IncarnationId>,
    },
    /// Living nodes work with different bucket counts, or with another than the store's.
    NumBucketsMismatch {
        /// Each count with the owners that work with it.
        counts: BTreeMap<u32, BTreeSet<Text>>,
        /// What the store recorded.
        stored: Option<u32>,
    },
    /// A bucket has unfinished tasks, and no living node covers it.
    BucketUnowned {
        /// The bucket.
        bucket: u32,
        /// How many unfinished tasks it has.
        tasks: u64,
    },
    /// An unfinished task that has not changed for long has no living holder.
    OrphanTask {
        /// The task.
        task_id: TaskId,
        /// Where it stands.
        status: Status,
        /// Whose it was.
        owner: Text,
        /// The incarnation that held it.
        supervisor: Option<IncarnationId>,
        /// Its latest change.
        unchanged_since: Timestamp,
    },
}

impl Alert {
    /// The word that JSON and tables use.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BucketOverlap { .. } => "bucket-overlap",
            Self::OwnerTwice { .. } => "owner-twice",
            Self::NumBucketsMismatch { .. } => "num-buckets-mismatch",
            Self::BucketUnowned { .. } => "bucket-unowned",
            Self::OrphanTask { .. } => "orphan-task",
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BucketOverlap { buckets, owners: [one, other] } => {
                let subject = if buckets.len() == 1 { "bucket" } else { "buckets" };
                write!(
                    f,
                    "{subject} {buckets} owned by two living nodes, {one:?} and {other:?}; \
                     give each bucket to one node"
                )
            }
            Self::OwnerTwice { owner, incarnations } => {
                let names: Vec<&str> = incarnations.iter().map(IncarnationId::as_str).collect();
                write!(
                    f,
                    "owner {owner:?} lives {} times (incarnations {}); \
                     give each process a name of its own",
                    incarnations.len(),
                    names.join(", ")
                )
            }
            Self::NumBucketsMismatch { counts, stored } => {
                f.write_str("nodes disagree on num_buckets: ")?;
                for (i, (count, owners)) in counts.iter().enumerate() {
                    let owners: Vec<String> = owners.iter().map(|o| format!("{o:?}")).collect();
                    let gap = if i == 0 { "" } else { ", " };
                    write!(f, "{gap}{count} ({})", owners.join(", "))?;
                }
                match stored {
                    Some(stored) => write!(f, "; the store has {stored}, so restart the others"),
                    None => f.write_str("; restart them with one number"),
                }
            }
            Self::BucketUnowned { bucket, tasks } => write!(
                f,
                "bucket {bucket} has {tasks} unfinished {} and no living node; start a node that owns it",
                if *tasks == 1 { "task" } else { "tasks" }
            ),
            Self::OrphanTask { task_id, status, owner, supervisor, unchanged_since } => {
                write!(f, "task {task_id:?} is {status} since {unchanged_since}, and ")?;
                match supervisor {
                    Some(holder) => write!(f, "its holder {holder} of {owner:?} is gone")?,
                    None => f.write_str("nobody holds it")?,
                }
                f.write_str(if status.is_adoptable() {
                    "; submit it again to go on, or stop it"
                } else {
                    "; reconcile settles what became of it"
                })
            }
        }
    }
}

/// Judges what the store knows: all node rows with their leases, the counts of tasks, the unfinished tasks
/// without a living holder that have not changed for long, and the store's own bucket count.
#[must_use]
pub fn doctor(
    nodes: &[NodeRow],
    counts: &[Count],
    orphans: &[TaskSnapshot],
    stored_num_buckets: Option<u32>,
) -> Vec<Alert> {
    let living: Vec<&NodeRow> = nodes.iter().filter(|row| row.alive).collect();
    let mut alerts = overlaps(&living);
    alerts.extend(owners_twice(&living));
    alerts.extend(mismatch(&living, stored_num_buckets));
    alerts.extend(unowned(&living, counts));
    alerts.extend(orphans.iter().map(|task| Alert::OrphanTask {
        task_id: task.id.clone(),
        status: task.status(),
        owner: task.owner.clone(),
        supervisor: task.supervisor.clone(),
        unchanged_since: task.updated_at,
    }));
    alerts
}

/// Reads what [`doctor`] needs, and judges it. Leases are judged by the store's clock; `at` is now, for what
/// has not changed for `stale`.
///
/// # Errors
/// [`StoreError`] when the store cannot be read.
pub fn examine(
    store: &dyn TaskStore,
    stale: Duration,
    at: Timestamp,
) -> Result<Vec<Alert>, StoreError> {
    let unfinished =
        TaskFilter { statuses: Some(StatusSet::unfinished()), ..TaskFilter::default() };
    let counts = store.count(&unfinished)?;
    let filter = TaskFilter {
        lease_expired: Some((true, Now::Store)),
        unchanged_since: Some(at.before(stale)),
        ..unfinished
    };
    let mut query = TaskQuery { filter, after: None, limit: 500 };
    let mut orphans = Vec::new();
    loop {
        let page = store.query(&query)?;
        orphans.extend(page.tasks);
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    Ok(doctor(&store.nodes(Now::Store)?, &counts, &orphans, stored_num_buckets(store)?))
}

/// What the living nodes declare against one of them, for that one to say as soon as it has started
/// (spec 12). Nothing where it is no living node.
pub(crate) fn examine_node(
    store: &dyn TaskStore,
    own: &IncarnationId,
) -> Result<Vec<Alert>, StoreError> {
    Ok(concerning(own, &store.nodes(Now::Store)?, stored_num_buckets(store)?))
}

fn stored_num_buckets(store: &dyn TaskStore) -> Result<Option<u32>, StoreError> {
    Ok(store.pinned(FACT_NUM_BUCKETS)?.and_then(|count| count.parse().ok()))
}

fn concerning(
    own: &IncarnationId,
    nodes: &[NodeRow],
    stored_num_buckets: Option<u32>,
) -> Vec<Alert> {
    let own = nodes.iter().find(|row| row.alive && row.node.incarnation == *own);
    let Some(NodeRow { node: own, .. }) = own else { return Vec::new() };
    let mut alerts = doctor(nodes, &[], &[], stored_num_buckets);
    alerts.retain(|alert| match alert {
        Alert::BucketOverlap { owners, .. } => owners.contains(&own.owner),
        Alert::OwnerTwice { owner, .. } => *owner == own.owner,
        Alert::NumBucketsMismatch { .. } => true,
        Alert::BucketUnowned { .. } | Alert::OrphanTask { .. } => false,
    });
    alerts
}

/// The share that a node declares, unless it is everything: then it is no partition.
fn partition(row: &NodeRow) -> Option<&BucketSet> {
    let owned = row.node.owned_buckets.as_ref()?;
    (owned.len() < row.node.num_buckets.get() as usize).then_some(owned)
}

fn overlaps(living: &[&NodeRow]) -> Vec<Alert> {
    let mut shares: BTreeMap<&Text, BTreeSet<u32>> = BTreeMap::new();
    for row in living {
        if let Some(owned) = partition(row) {
            shares.entry(&row.node.owner).or_default().extend(owned.as_slice());
        }
    }
    let shares: Vec<_> = shares.into_iter().collect();
    let mut alerts = Vec::new();
    for (i, (one, share)) in shares.iter().enumerate() {
        for (other, others) in shares.iter().skip(i + 1) {
            let buckets: BucketSet = share.intersection(others).copied().collect();
            if !buckets.is_empty() {
                let owners = [(*one).clone(), (*other).clone()];
                alerts.push(Alert::BucketOverlap { buckets, owners });
            }
        }
    }
    alerts
}

fn owners_twice(living: &[&NodeRow]) -> Vec<Alert> {
    let mut lives: BTreeMap<&Text, Vec<IncarnationId>> = BTreeMap::new();
    for row in living {
        lives.entry(&row.node.owner).or_default().push(row.node.incarnation.clone());
    }
    let twice = lives.into_iter().filter(|(_, incarnations)| incarnations.len() > 1);
    twice
        .map(|(owner, incarnations)| Alert::OwnerTwice { owner: owner.clone(), incarnations })
        .collect()
}

fn mismatch(living: &[&NodeRow], stored: Option<u32>) -> Option<Alert> {
    let mut counts: BTreeMap<u32, BTreeSet<Text>> = BTreeMap::new();
    for row in living {
        counts.entry(row.node.num_buckets.get()).or_default().insert(row.node.owner.clone());
    }
    let expected = stored.or_else(|| counts.keys().next().copied());
    let differs = counts.keys().any(|count| Some(*count) != expected);
    differs.then_some(Alert::NumBucketsMismatch { counts, stored })
}

fn unowned(living: &[&NodeRow], counts: &[Count]) -> Vec<Alert> {
    let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
    for count in counts.iter().filter(|count| !count.status.is_terminal()) {
        if let Some(bucket) = count.bucket {
            *waiting.entry(bucket).or_default() += count.tasks;
        }
    }
    let is_covered = |bucket: u32| {
        living.iter().any(|row| partition(row).is_none_or(|owned| owned.contains(bucket)))
    };
    let unowned = waiting.into_iter().filter(|(bucket, _)| !is_covered(*bucket));
    unowned.map(|(bucket, tasks)| Alert::BucketUnowned { bucket, tasks }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Node;
    use std::num::NonZeroU32;

    const AT: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    fn node(owner: &str, life: &str, owned: Option<&str>) -> NodeRow {
        let node = Node {
            owner: owner.into(),
            incarnation: IncarnationId::new(life).unwrap(),
            host: "box".into(),
            pid: 1,
            num_buckets: NonZeroU32::new(64).unwrap(),
            owned_buckets: owned.map(|set| set.parse().unwrap()),
            artifacts: None,
            started_at: AT,
        };
        NodeRow { node, lease_until: AT, alive: true }
    }

    fn dead(row: NodeRow) -> NodeRow {
        NodeRow { alive: false, ..row }
    }

    fn count(bucket: Option<u32>, status: Status, tasks: u64) -> Count {
        Count { bucket, status, tasks }
    }

    fn judge(nodes: &[NodeRow], counts: &[Count]) -> Vec<Alert> {
        doctor(nodes, counts, &[], Some(64))
    }

    #[test]
    fn an_overlap_is_between_living_partitions_of_different_owners() {
        let a = || node("a", "1", Some("0-15"));
        let alert = Alert::BucketOverlap {
            buckets: "7,9".parse().unwrap(),
            owners: ["a".into(), "b".into()],
        };
        assert_eq!(judge(&[a(), node("b", "2", Some("7,9,40"))], &[]), [alert]);
        for other in [
            node("b", "2", Some("16-63")),
            node("b", "2", None),
            node("b", "2", Some("0-63")),
            dead(node("b", "2", Some("7"))),
        ] {
            assert_eq!(judge(&[a(), other], &[]), []);
        }
    }

    #[test]
    fn one_owner_twice_is_no_overlap() {
        let alerts = judge(&[node("a", "1", Some("7")), node("a", "2", Some("7"))], &[]);
        let incarnations = ["1", "2"].map(|id| IncarnationId::new(id).unwrap()).to_vec();
        assert_eq!(alerts, [Alert::OwnerTwice { owner: "a".into(), incarnations }]);
        assert_eq!(judge(&[node("a", "1", None), dead(node("a", "2", None))], &[]), []);
    }

    #[test]
    fn an_unowned_bucket_has_unfinished_tasks_and_nobody_who_covers_it() {
        let counts = [
            count(Some(3), Status::Queued, 2),
            count(Some(3), Status::Running, 1),
            count(Some(4), Status::Succeeded, 9),
            count(None, Status::Queued, 5),
        ];
        let unowned = [Alert::BucketUnowned { bucket: 3, tasks: 3 }];
        assert_eq!(judge(&[], &counts), unowned);
        assert_eq!(
            judge(&[node("a", "1", Some("4-9")), dead(node("b", "2", None))], &counts),
            unowned
        );
        assert_eq!(judge(&[node("a", "1", Some("3"))], &counts), []);
        assert_eq!(judge(&[node("a", "1", None)], &counts), []);
    }

    #[test]
    fn nodes_that_disagree_with_each_other_or_the_store_are_told() {
        let other = |owner, life| {
            let mut row = node(owner, life, None);
            row.node.num_buckets = NonZeroU32::new(32).unwrap();
            row
        };
        let both = [node("a", "1", None), other("b", "2")];
        for (nodes, stored, wrong) in [
            (&both[..], None, true),
            (&both[..], Some(64), true),
            (&both[1..], Some(64), true),
            (&both[1..], None, false),
            (&both[..1], Some(64), false),
            (&[][..], Some(64), false),
        ] {
            let alerts = doctor(nodes, &[], &[], stored);
            assert_eq!(!alerts.is_empty(), wrong, "{stored:?} {alerts:?}");
        }
    }

    #[test]
    fn a_node_is_told_only_what_concerns_it_while_it_lives() {
        let nodes = [
            node("a", "1", Some("0-15")),
            node("b", "2", Some("7")),
            node("c", "3", Some("20")),
            node("c", "4", Some("20")),
            dead(node("a", "5", Some("0-15"))),
        ];
        let kinds = |life: &str| -> Vec<&str> {
            let alerts = concerning(&IncarnationId::new(life).unwrap(), &nodes, Some(64));
            alerts.iter().map(Alert::kind).collect()
        };
        assert_eq!(kinds("1"), ["bucket-overlap"]);
        assert_eq!(kinds("2"), ["bucket-overlap"]);
        assert_eq!(kinds("3"), ["owner-twice"]);
        assert_eq!(kinds("5"), [""; 0]);
        assert_eq!(kinds("nobody"), [""; 0]);
        let own = IncarnationId::new("1").unwrap();
        let alerts = concerning(&own, &nodes, Some(32));
        assert_eq!(alerts.last().map(Alert::kind), Some("num-buckets-mismatch"));
    }

    #[test]
    fn every_alert_names_its_subject_and_what_to_do() {
        let task = TaskSnapshot::pending(TaskId::new("t1").unwrap(), "sync", "a".into(), AT);
        let nodes =
            [node("a", "1", Some("7")), node("a", "2", Some("7")), node("b", "3", Some("7")), {
                let mut row = node("c", "4", Some("1"));
                row.node.num_buckets = NonZeroU32::new(32).unwrap();
                row
            }];
        let counts = [count(Some(40), Status::Queued, 1)];
        let told: Vec<(&str, String)> = doctor(&nodes, &counts, &[task], Some(64))
            .iter()
            .map(|alert| (alert.kind(), alert.to_string()))
            .collect();
        let told: Vec<(&str, &str)> = told.iter().map(|(kind, text)| (*kind, &**text)).collect();
        assert_eq!(
            told,
            [
                (
                    "bucket-overlap",
                    "bucket 7 owned by two living nodes, \"a\" and \"b\"; give each bucket to one node"
                ),
                (
                    "owner-twice",
                    "owner \"a\" lives 2 times (incarnations 1, 2); give each process a name of its own"
                ),
                (
                    "num-buckets-mismatch",
                    "nodes disagree on num_buckets: 32 (\"c\"), 64 (\"a\", \"b\"); the store has 64, so \
                     restart the others"
                ),
                (
                    "bucket-unowned",
                    "bucket 40 has 1 unfinished task and no living node; start a node that owns it"
                ),
                (
                    "orphan-task",
                    "task \"t1\" is pending since 2026-09-21T14:13:20.000000Z, and nobody holds it; \
                     submit it again to go on, or stop it"
                ),
            ]
        );
    }
}
