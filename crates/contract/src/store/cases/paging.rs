//! Pages: their order, their cursors, and that they stay true while rows change.

use std::collections::BTreeSet;

use chongming_core::Status;
use chongming_core::store::{Cursor, PruneRequest, StoreErrorKind, TaskPage, TaskQuery, TaskStore};

use crate::breach::{Outcome, fails, present, same};
use crate::store::cases::query::{all, fill, fill_with, in_states};
use crate::store::fixture::Data;
use crate::store::sample::{accepted, at, create, finds, now, save, task, task_in};

pub(crate) fn newest_created_first(data: &dyn Data) -> Outcome {
    let store = data.connect();
    // Neither ids nor times decide.
    for (id, created) in [("m", 5), ("z", 1), ("a", 9), ("k", 0)] {
        let mut task = task(id)?;
        task.created_at = at(created);
        fill(&*store, &[task])?;
    }
    let batch = [create(&task("x")?, &[]), create(&task("b")?, &[])];
    accepted(&*store, &batch)?;
    finds(&*store, all(), &["b", "x", "k", "a", "z", "m"])
}

pub(crate) fn last_page_says_so(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let query = |limit| TaskQuery { filter: all(), after: None, limit };
    same("a page of nothing", store.query(&query(5))?, TaskPage::default())?;
    fill_with(&*store, "abcd", |_, _| ())?;
    for (limit, more) in [(3, true), (4, false), (5, false), (usize::MAX, false)] {
        let page = store.query(&query(limit))?;
        let what = format!("is there more behind a page of {limit} out of 4");
        same(&what, page.next.is_some(), more)?;
        same("tasks on the page", page.tasks.len(), limit.min(4))?;
    }
    Ok(())
}

pub(crate) fn order_outlasts_changes(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "abcdef", |_, _| ())?;
    let mut query = TaskQuery { filter: all(), after: None, limit: 2 };
    let mut seen = Vec::new();
    for round in 0.. {
        let page = store.query(&query)?;
        seen.extend(page.tasks.iter().map(|task| task.id.to_string()));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        // What was seen and what is still to come changes; new tasks come in.
        for id in ["b", "e"] {
            let mut next = task(id)?.restored(Status::Running, round + 1);
            next.updated_at = at(100);
            accepted(&*store, &[save(&next, round)])?;
        }
        fill(&*store, &[task(&format!("new-{round}"))?])?;
    }
    same(
        "tasks visited while rows change",
        seen,
        ["f", "e", "d", "c", "b", "a"].map(String::from).to_vec(),
    )
}

/// Ids on all pages of two of running tasks; `between` is called after each page but the last.
fn running_pages(
    store: &dyn TaskStore,
    mut between: impl FnMut(u64) -> Outcome,
) -> Outcome<Vec<String>> {
    let mut query = TaskQuery { filter: in_states(&[Status::Running]), after: None, limit: 2 };
    let mut seen = Vec::new();
    for round in 0..100 {
        let page = store.query(&query)?;
        seen.extend(page.tasks.iter().map(|task| task.id.to_string()));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        between(round)?;
    }
    Ok(seen)
}

pub(crate) fn filtered_pages_outlast_changes(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for letter in 'a'..='l' {
        fill(&*store, &[task_in(&letter.to_string(), Status::Running, 0)?])?;
    }
    // Where the cursor stands leaves the filter, and so does what is still to come; new ones come in.
    let leaving = [["k", "a"], ["i", "b"], ["l", "c"]];
    let mut leaving = leaving.into_iter();
    let seen = running_pages(&*store, |round| {
        for id in leaving.next().into_iter().flatten() {
            accepted(&*store, &[save(&task_in(id, Status::Succeeded, 1)?, 0)])?;
        }
        fill(&*store, &[task_in(&format!("new-{round}"), Status::Running, 0)?])
    })?;
    let distinct: BTreeSet<&String> = seen.iter().collect();
    same("tasks listed twice", seen.len() - distinct.len(), 0)?;
    let throughout = vec!["j", "h", "g", "f", "e", "d"];
    let seen: Vec<&str> =
        seen.iter().map(String::as_str).filter(|id| throughout.contains(id)).collect();
    same("tasks listed, of those that matched throughout", seen, throughout)
}

pub(crate) fn cursor_outlasts_its_task(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let ended = |id: &str| task_in(id, Status::Failed, 0);
    fill(&*store, &[ended("a")?, ended("b")?, ended("c")?, ended("d")?, task("e")?])?;
    let query = TaskQuery { filter: all(), after: None, limit: 3 };
    let first = store.query(&query)?;
    let cursor = present("a cursor behind the first page", first.next)?;
    let rest = TaskQuery { after: Some(cursor), limit: 9, ..query };
    let behind = || -> Outcome<Vec<String>> {
        Ok(store.query(&rest)?.tasks.iter().map(|task| task.id.to_string()).collect())
    };
    same("tasks behind the cursor", behind()?, ["b", "a"].map(String::from).to_vec())?;
    // The task that the cursor stands at goes, and all before it.
    for id in ["a", "b"] {
        let mut kept = task_in(id, Status::Failed, 1)?;
        kept.ended_at = Some(at(500));
        accepted(&*store, &[save(&kept, 0)])?;
    }
    let request = PruneRequest { before: at(100), limit: 10, dry_run: false };
    same("pruned", store.prune(&request, now(0))?.tasks, 2)?;
    same("tasks behind the cursor", behind()?, ["b", "a"].map(String::from).to_vec())
}

pub(crate) fn bad_requests_are_invalid(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "ab", |_, _| ())?;
    for cursor in ["", "nonsense", "-1", "1 OR 1", "99999999999999999999999", "0x1"] {
        let query = TaskQuery { filter: all(), after: Some(Cursor(cursor.into())), limit: 1 };
        let what = format!("a page behind the cursor {cursor:?}");
        fails(&what, store.query(&query), StoreErrorKind::Invalid)?;
    }
    let nothing = TaskQuery { filter: all(), after: None, limit: 0 };
    fails("a page of 0 tasks", store.query(&nothing), StoreErrorKind::Invalid)
}
