//! Finding tasks in a store: one by its id, many by a filter.

use std::sync::Arc;

use chongming_core::store::{TaskFilter, TaskQuery, TaskStore};
use chongming_core::{TaskId, TaskSnapshot, Transition};

use crate::error::CliError;
use crate::nearest::nearest;
use crate::open_store::store_error;

/// Rows that are read at once.
const PAGE: usize = 1000;
/// So many of the latest tasks are looked at for an id that was mistyped.
const LATEST: usize = 1000;
/// So many tasks are named whose id or label has the text in it.
const NAMED: usize = 5;

/// The task of this id.
pub(super) fn task(store: &Arc<dyn TaskStore>, id: &TaskId) -> Result<TaskSnapshot, CliError> {
    match store.get(id).map_err(store_error)? {
        Some(task) => Ok(task),
        None => Err(unknown(store, id)),
    }
}

/// All that ever happened to a task.
pub(super) fn whole_history(
    store: &Arc<dyn TaskStore>,
    id: &TaskId,
) -> Result<Vec<Transition>, CliError> {
    let mut rows: Vec<Transition> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.version);
        let page = store.history(id, after, PAGE).map_err(store_error)?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

/// What is said about an id that no task has.
pub(super) fn unknown(store: &Arc<dyn TaskStore>, id: &TaskId) -> CliError {
    let error = CliError::new(format!("there is no task `{id}`"));
    let ids = |filter: TaskFilter, limit| -> Vec<TaskId> {
        // The hint is a courtesy: without it the error still says all that is needed.
        let page = store.query(&TaskQuery { filter, after: None, limit }).unwrap_or_default();
        page.tasks.into_iter().map(|task| task.id).collect()
    };
    let latest = ids(TaskFilter::default(), LATEST);
    if let Some(near) = nearest(id.as_str(), latest.iter().map(TaskId::as_str)) {
        return error.hint(format!("did you mean `{near}`?"));
    }
    let with_text = TaskFilter { text: Some(id.as_str().into()), ..TaskFilter::default() };
    let named: Vec<String> = ids(with_text, NAMED).iter().map(|id| format!("`{id}`")).collect();
    if named.is_empty() {
        return error.hint("`ps --all` lists the tasks");
    }
    error.hint(format!("it is part of the id or label of {}", named.join(", ")))
}

/// Gives the newest tasks that match, at most `limit` (0 = all), to `each`; says whether there are more.
pub(super) fn each_task(
    store: &Arc<dyn TaskStore>,
    filter: &TaskFilter,
    limit: usize,
    mut each: impl FnMut(TaskSnapshot) -> Result<(), CliError>,
) -> Result<bool, CliError> {
    let mut left = if limit == 0 { usize::MAX } else { limit };
    // One more than wanted tells whether something was cut off.
    let mut query =
        TaskQuery { filter: filter.clone(), after: None, limit: left.saturating_add(1).min(PAGE) };
    loop {
        let page = store.query(&query).map_err(store_error)?;
        for task in page.tasks {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            each(task)?;
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(false),
        }
    }
}
