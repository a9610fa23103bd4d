//! Deleting what ended long ago.

use chongming_core::Timestamp;
use chongming_core::store::{Now, PruneRequest};
use rusqlite::{Connection, params};

use crate::codes::{FIRST_ENDED, SUCCEEDED};
use crate::row::{limit, resolve};

/// Tasks deleted in one transaction: holds the write lock for milliseconds.
pub(crate) const CHUNK: usize = 512;

/// A task that may be pruned. The id guards against a sequence number that was given out again.
pub(crate) struct Ended {
    seq: i64,
    id: String,
}

/// Found without the write lock: ended tasks never change again.
pub(crate) fn ended(
    connection: &Connection,
    request: &PruneRequest,
) -> rusqlite::Result<Vec<Ended>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT seq, id FROM tasks WHERE status >= {FIRST_ENDED} AND ended_at < ?1 ORDER BY seq LIMIT ?2"
    ))?;
    let rows = statement
        .query_map(params![request.before.as_micros(), limit(request.limit)], |row| {
            Ok(Ended { seq: row.get(0)?, id: row.get(1)? })
        })?;
    rows.collect()
}

/// Deletes tasks with their trail and commands; returns how many were still there.
pub(crate) fn delete(connection: &Connection, tasks: &[Ended]) -> rusqlite::Result<usize> {
    let mut tags = connection.prepare_cached(&format!(
        "DELETE FROM task_tags WHERE (tag, task_seq) IN (SELECT j.value, t.seq \
         FROM tasks t, json_each(t.tags) j WHERE t.seq = ?1 AND t.id = ?2 AND t.status >= {FIRST_ENDED})"
    ))?;
    let mut task = connection.prepare_cached(&format!(
        "DELETE FROM tasks WHERE seq = ?1 AND id = ?2 AND status >= {FIRST_ENDED}"
    ))?;
    let mut trail = connection.prepare_cached("DELETE FROM transitions WHERE task_seq = ?1")?;
    let mut commands = connection.prepare_cached("DELETE FROM commands WHERE task_id = ?1")?;
    let mut deleted = 0;
    for Ended { seq, id } in tasks {
        tags.execute(params![seq, id])?;
        if task.execute(params![seq, id])? > 0 {
            trail.execute([seq])?;
            commands.execute([id])?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// Dead since before the time, named by no unfinished task, and not their owner's latest.
fn useless_nodes() -> String {
    format!(
        "lease_until < ?1 AND lease_until <= ?2 \
         AND incarnation NOT IN (SELECT supervisor FROM tasks WHERE status < {FIRST_ENDED} \
             AND status <> {SUCCEEDED} AND supervisor IS NOT NULL) \
         AND EXISTS (SELECT 1 FROM nodes later WHERE later.owner = nodes.owner \
             AND (later.started_at, later.incarnation) > (nodes.started_at, nodes.incarnation))"
    )
}

pub(crate) fn count_nodes(
    connection: &Connection,
    before: Timestamp,
    now: Now,
) -> rusqlite::Result<usize> {
    let sql = format!("SELECT count(*) FROM nodes WHERE {}", useless_nodes());
    let times = [before.as_micros(), resolve(now).as_micros()];
    connection
        .prepare_cached(&sql)?
        .query_row(times, |row| row.get::<_, u32>(0).map(|n| n as usize))
}

/// Deleting one row never makes another useful or useless: an owner's latest is never among them.
pub(crate) fn delete_nodes(
    connection: &Connection,
    before: Timestamp,
    now: Now,
) -> rusqlite::Result<usize> {
    let sql = format!("DELETE FROM nodes WHERE {}", useless_nodes());
    connection.prepare_cached(&sql)?.execute([before.as_micros(), resolve(now).as_micros()])
}
