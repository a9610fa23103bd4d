//! Reading tasks: one, pages, counts, trails. Everything is read in one transaction, so it is of one moment.

use std::collections::HashMap;

use chongming_core::store::{Count, Cursor, TaskFilter, TaskPage, TaskQuery};
use chongming_core::{StatusSet, TaskId, TaskSnapshot, Timestamp, Transition};
use redb::ReadTransaction;

use super::error::{Problem, Result};
use super::records::{NodeRecord, TaskRecord, TouchRecord, TransitionRecord, decode};
use super::tables::{NODES, TASK_IDS, TASKS, TOUCHED, TRAIL, UNFINISHED};

pub(super) fn get(transaction: &ReadTransaction, id: &TaskId) -> Result<Option<TaskSnapshot>> {
    let Some(number) = number(transaction, id)? else { return Ok(None) };
    let row = transaction.open_table(TASKS)?.get(number)?;
    row.map(|row| whole(transaction, number, row.value())).transpose()
}

fn number(transaction: &ReadTransaction, id: &TaskId) -> Result<Option<u64>> {
    Ok(transaction.open_table(TASK_IDS)?.get(id.as_str())?.map(|number| number.value()))
}

/// The task with what stands elsewhere: what was touched, and its holder's lease.
fn whole(transaction: &ReadTransaction, number: u64, row: &[u8]) -> Result<TaskSnapshot> {
    let mut task = decode::<TaskRecord>(row)?.into_task()?;
    if let Some(touched) = transaction.open_table(TOUCHED)?.get(number)? {
        decode::<TouchRecord>(touched.value())?.give(&mut task);
    }
    if let Some(holder) = &task.supervisor
        && let Some(row) = transaction.open_table(NODES)?.get(holder.as_str())?
    {
        let until = decode::<NodeRecord>(row.value())?.lease_until;
        task.lease_until = Some(Timestamp::from_micros(until));
    }
    Ok(task)
}

pub(super) fn history(
    transaction: &ReadTransaction,
    id: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Transition>> {
    let (Some(number), Some(first)) = (number(transaction, id)?, after.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let trail = transaction.open_table(TRAIL)?;
    let rows = trail.range((number, first)..=(number, u64::MAX))?.take(limit);
    rows.map(|row| {
        let (key, row) = row?;
        decode::<TransitionRecord>(row.value())?.into_transition(id, key.value().1)
    })
    .collect()
}

// guide: page
/// A cursor is the number of the last task of its page: nothing that happens to tasks changes what is behind.
pub(super) fn page(
    transaction: &ReadTransaction,
    query: &TaskQuery,
    now: Option<Timestamp>,
) -> Result<TaskPage> {
    if query.limit == 0 {
        return Err(Problem::Invalid("a page of 0 tasks was asked for".to_owned()));
    }
    let before = match &query.after {
        None => u64::MAX,
        Some(cursor) => place(cursor).ok_or_else(|| {
            Problem::Invalid(format!("{:?} is no cursor of this store", cursor.0))
        })?,
    };
    let mut page = TaskPage::default();
    let mut last = 0;
    matching(transaction, &query.filter, before, now, |number, task| {
        // One more than asked for says that there is another page.
        if page.tasks.len() == query.limit {
            page.next = Some(Cursor(last.to_string().into()));
            return false;
        }
        page.tasks.push(task);
        last = number;
        true
    })?;
    Ok(page)
}

fn place(cursor: &Cursor) -> Option<u64> {
    let is_number = cursor.0.bytes().all(|byte| byte.is_ascii_digit());
    cursor.0.parse().ok().filter(|number| is_number && *number > 0)
}
// guide: end

pub(super) fn count(
    transaction: &ReadTransaction,
    filter: &TaskFilter,
    now: Option<Timestamp>,
) -> Result<Vec<Count>> {
    let mut counts = HashMap::new();
    matching(transaction, filter, u64::MAX, now, |_, task| {
        *counts.entry((task.bucket, task.status())).or_insert(0) += 1;
        true
    })?;
    let count = |((bucket, status), tasks)| Count { bucket, status, tasks };
    Ok(counts.into_iter().map(count).collect())
}

/// Shows matching tasks, newest first, as long as `show` wants more.
fn matching(
    transaction: &ReadTransaction,
    filter: &TaskFilter,
    before: u64,
    now: Option<Timestamp>,
    mut show: impl FnMut(u64, TaskSnapshot) -> bool,
) -> Result<()> {
    let tasks = transaction.open_table(TASKS)?;
    let mut look = |number, row: &[u8]| -> Result<bool> {
        let task = whole(transaction, number, row)?;
        Ok(!matches(filter, &task, now) || show(number, task))
    };
    let unfinished = StatusSet::unfinished();
    let wanted = filter.statuses.filter(|set| set.iter().all(|status| unfinished.contains(status)));
    if wanted.is_some() {
        for number in transaction.open_table(UNFINISHED)?.range(..before)?.rev() {
            let number = number?.0.value();
            if let Some(row) = tasks.get(number)?
                && !look(number, row.value())?
            {
                break;
            }
        }
        return Ok(());
    }
    for row in tasks.range(..before)?.rev() {
        let (number, row) = row?;
        if !look(number.value(), row.value())? {
            break;
        }
    }
    Ok(())
}

/// Every condition that is given must hold. Taking the filter apart makes a new one an error here.
fn matches(filter: &TaskFilter, task: &TaskSnapshot, now: Option<Timestamp>) -> bool {
    let TaskFilter {
        statuses,
        buckets,
        tags,
        name,
        owner,
        supervisor,
        lease_expired,
        unchanged_since,
        text,
    } = filter;
    let is_expired = task.lease_until.zip(now).is_none_or(|(until, now)| until <= now);
    let has_text = |field: &str| text.as_ref().is_none_or(|text| field.contains(&**text));
    statuses.is_none_or(|set| set.contains(task.status()))
        && buckets.as_ref().is_none_or(|set| task.bucket.is_some_and(|bucket| set.contains(bucket)))
        && tags.iter().all(|tag| task.tags.contains(tag))
        && name.as_ref().is_none_or(|name| *name == task.name)
        && owner.as_ref().is_none_or(|owner| *owner == task.owner)
        && (supervisor.is_none() || *supervisor == task.supervisor)
        && lease_expired.is_none_or(|(wanted, _)| is_expired == wanted)
        && unchanged_since.is_none_or(|time| task.updated_at < time)
        && (has_text(task.id.as_str()) || task.label.as_deref().is_some_and(has_text))
}
