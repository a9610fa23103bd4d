use chongming_core::store::*;

use crate::store::Store;

saboteurs! {
    newest_created_first / oldest_first: query = |store, query| {
        let mut page = store.memory.query(query)?;
        page.tasks.reverse();
        Ok(page)
    };
    last_page_says_so / always_another_page: query = |store, query| {
        let mut page = store.memory.query(query)?;
        page.next.get_or_insert(Cursor("1".into()));
        Ok(page)
    };
    order_outlasts_changes, filtered_pages_outlast_changes / counts_from_the_start: query =
        |store, query| {
            let skipped = query.after.as_ref().map_or(0, |cursor| cursor.0.parse().unwrap());
            Ok(cut(store, query, skipped, |taken, _| taken.to_string()))
        };
    filtered_pages_outlast_changes, cursor_outlasts_its_task / looks_for_the_last_task: query =
        |store, query| {
            let all = store.all(&query.filter);
            let place = query.after.as_ref().and_then(|cursor| {
                all.iter().position(|task| task.id.as_str() == &*cursor.0)
            });
            Ok(cut(store, query, place.map_or(0, |place| place + 1), |_, last| last.to_owned()))
        };
    bad_requests_are_invalid / takes_garbage_for_the_start: query = |store, query| {
        let mut query = query.clone();
        query.after = query.after.filter(|cursor| cursor.0.parse::<u32>().is_ok());
        store.memory.query(&query)
    };
    bad_requests_are_invalid / gives_a_page_of_nothing: query = |store, query| match query.limit {
        0 => Ok(TaskPage::default()),
        _ => store.memory.query(query),
    };
}

/// A page of all that matches now, behind so many; `cursor` is made from the place and the last task's id.
fn cut(
    store: &Store,
    query: &TaskQuery,
    skipped: usize,
    cursor: fn(usize, &str) -> String,
) -> TaskPage {
    let all = store.all(&query.filter);
    let tasks: Vec<_> = all.iter().skip(skipped).take(query.limit).cloned().collect();
    let taken = skipped + tasks.len();
    let last = tasks.last().map_or("", |task| task.id.as_str());
    let next = (taken < all.len()).then(|| Cursor(cursor(taken, last).into()));
    TaskPage { tasks, next }
}
