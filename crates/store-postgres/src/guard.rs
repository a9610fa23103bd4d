//! Lease guards: saves that go through only when the stored holder's lease has expired.
//!
//! The task's row is locked first, then its holder's node row, and only then the clock is read: a renewal
//! that is under way is waited for, and one that comes later sees that its lease had expired.

use std::collections::HashMap;

use chongming_core::Timestamp;
use chongming_core::store::{Entry, EntryError, Now};

use crate::connection::Link;
use crate::error::Result;
use crate::row::{get, time, unsigned};
use crate::write::{Placed, Refusable, refusal};

/// In a fixed order, so that two who judge the same tasks wait for each other instead of blocking for ever.
const TASKS: &str = "SELECT id, status_version, supervisor FROM ~tasks WHERE id = ANY($1) ORDER BY id \
    FOR NO KEY UPDATE";

const NODES: &str = "SELECT incarnation, lease_until FROM ~nodes WHERE incarnation = ANY($1) \
    ORDER BY incarnation FOR SHARE";

pub(crate) fn is_guarded(entry: &Entry) -> bool {
    match entry {
        Entry::Save { if_expired, .. } => if_expired.is_some(),
        Entry::Create { .. } | Entry::Touch(_) => false,
    }
}

/// A stored task.
struct Stored {
    version: u64,
    holder: Option<String>,
}

/// The entries of the round that may be written; the others are answered. To be called in the transaction
/// that writes them.
pub(crate) fn pass<'a>(
    link: &mut Link,
    round: &[Placed<'a>],
    answers: &mut [Refusable],
) -> Result<Vec<Placed<'a>>> {
    let guarded = || round.iter().filter(|(_, entry)| is_guarded(entry));
    let ids: Vec<&str> = guarded().map(|(_, entry)| entry.task_id().as_str()).collect();
    if ids.is_empty() {
        return Ok(round.to_vec());
    }
    let mut tasks: HashMap<String, Stored> = HashMap::new();
    for row in &link.query(TASKS, &[&ids])? {
        let stored = Stored { version: unsigned(row, 1)?, holder: get(row, 2)? };
        tasks.insert(get(row, 0)?, stored);
    }
    let mut holders: Vec<&str> = tasks.values().filter_map(|task| task.holder.as_deref()).collect();
    holders.sort_unstable();
    holders.dedup();
    let mut leases: HashMap<String, Timestamp> = HashMap::new();
    for row in &link.query(NODES, &[&holders])? {
        leases.insert(get(row, 0)?, time(row, 1)?);
    }
    let clock = time(&link.query_one("SELECT clock_timestamp()", &[])?, 0)?;
    let refused = |entry: &Entry| {
        let Entry::Save { if_expired: Some(now), .. } = entry else { return None };
        let stored = tasks.get(entry.task_id().as_str());
        let lease = stored.and_then(|task| leases.get(task.holder.as_deref()?)).copied();
        let now = match now {
            Now::Store => clock,
            Now::At(time) => *time,
        };
        refusal(entry, stored.map(|task| task.version)).or_else(|| {
            lease.filter(|until| *until > now).map(|until| EntryError::LeaseHeld { until })
        })
    };
    let mut passed = Vec::with_capacity(round.len());
    for &(place, entry) in round {
        match refused(entry) {
            None => passed.push((place, entry)),
            Some(why) => {
                if let Some(answer) = answers.get_mut(place) {
                    *answer = Err(why);
                }
            }
        }
    }
    Ok(passed)
}
