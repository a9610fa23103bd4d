//! What is asked of a store (spec 9): filters, pages, counts.

use crate::bucket::BucketSet;
use crate::id::IncarnationId;
use crate::snapshot::TaskSnapshot;
use crate::status::{Status, StatusSet};
use crate::store::write::Now;
use crate::text::Text;
use crate::time::Timestamp;

/// Which tasks; every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFilter {
    /// In one of these states.
    pub statuses: Option<StatusSet>,
    /// In one of these buckets (a task without a bucket is in none).
    pub buckets: Option<BucketSet>,
    /// With all of these tags.
    pub tags: Vec<Text>,
    /// Of this definition.
    pub name: Option<Text>,
    /// Of this owner.
    pub owner: Option<Text>,
    /// Held by this incarnation.
    pub supervisor: Option<IncarnationId>,
    /// `true`: the holder's lease has expired (or it has no holder); `false`: it has not.
    pub lease_expired: Option<(bool, Now)>,
    /// Without a change of status since before this time.
    pub unchanged_since: Option<Timestamp>,
    /// With this text somewhere in its id or label, letter for letter.
    pub text: Option<Text>,
}

/// One page of tasks, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskQuery {
    /// Which tasks.
    pub filter: TaskFilter,
    /// Behind the page that gave this cursor.
    pub after: Option<Cursor>,
    /// At most this many; at least 1.
    pub limit: usize,
}

/// A place in the order of tasks: made by a store, opaque to everybody else, good for the same filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(pub Text);

/// A page of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPage {
    /// Newest created first; the order never changes while rows do.
    pub tasks: Vec<TaskSnapshot>,
    /// Where the next page starts; `None` = this was the last.
    pub next: Option<Cursor>,
}

/// How many tasks of one bucket are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The bucket; `None` = tasks without.
    pub bucket: Option<u32>,
    /// The state.
    pub status: Status,
    /// How many; at least 1.
    pub tasks: u64,
}
