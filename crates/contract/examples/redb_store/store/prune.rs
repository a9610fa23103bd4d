//! Deleting what ended long ago.

use std::collections::{HashMap, HashSet};

use chongming_core::store::{PruneRequest, Pruned};
use chongming_core::{Status, Timestamp};
use redb::{ReadableTable, WriteTransaction};

use super::commands;
use super::error::{Result, unreadable};
use super::records::{NodeRecord, TaskRecord, decode};
use super::tables::{NODES, TASK_IDS, TASKS, TOUCHED, TRAIL, UNFINISHED};

/// Deletes; a dry run is the same, in a transaction that is given up.
pub(super) fn prune(
    transaction: &WriteTransaction,
    request: &PruneRequest,
    now: Timestamp,
) -> Result<Pruned> {
    let mut tasks = transaction.open_table(TASKS)?;
    let mut ended = Vec::new();
    for row in tasks.iter()? {
        if ended.len() == request.limit {
            break;
        }
        let (number, row) = row?;
        let record: TaskRecord = decode(row.value())?;
        let status: Status = record.status.parse().map_err(unreadable)?;
        let is_old = record.ended_at.is_some_and(|at| at < request.before.as_micros());
        if status.is_terminal() && is_old {
            ended.push((number.value(), record.id));
        }
    }
    let (mut ids, mut trail) = (transaction.open_table(TASK_IDS)?, transaction.open_table(TRAIL)?);
    let mut touched = transaction.open_table(TOUCHED)?;
    for (number, id) in &ended {
        tasks.remove(number)?;
        ids.remove(id.as_str())?;
        touched.remove(number)?;
        trail.retain_in((*number, 0)..=(*number, u64::MAX), |_, _| false)?;
        commands::forget(transaction, id)?;
    }
    let mut holders = HashSet::new();
    for number in transaction.open_table(UNFINISHED)?.iter()? {
        if let Some(row) = tasks.get(number?.0.value())? {
            holders.extend(decode::<TaskRecord>(row.value())?.supervisor);
        }
    }
    let nodes = prune_nodes(transaction, request, now, &holders)?;
    Ok(Pruned { tasks: ended.len(), nodes })
}

/// Dead since before the time, named by no unfinished task, and not their owner's latest.
fn prune_nodes(
    transaction: &WriteTransaction,
    request: &PruneRequest,
    now: Timestamp,
    holders: &HashSet<String>,
) -> Result<usize> {
    let mut nodes = transaction.open_table(NODES)?;
    let mut rows = Vec::new();
    for row in nodes.iter()? {
        let (incarnation, row) = row?;
        rows.push((incarnation.value().to_owned(), decode::<NodeRecord>(row.value())?));
    }
    let mut latest: HashMap<&str, (i64, &str)> = HashMap::new();
    for (incarnation, row) in &rows {
        let start = (row.started_at, incarnation.as_str());
        let latest = latest.entry(&row.owner).or_insert(start);
        *latest = start.max(*latest);
    }
    let mut deleted = 0;
    for (incarnation, row) in &rows {
        let is_dead = row.lease_until < request.before.as_micros()
            && Timestamp::from_micros(row.lease_until) <= now;
        let is_latest = latest.get(row.owner.as_str()).is_some_and(|(_, id)| id == incarnation);
        if is_dead && !is_latest && !holders.contains(incarnation) {
            nodes.remove(incarnation.as_str())?;
            deleted += 1;
        }
    }
    Ok(deleted)
}
