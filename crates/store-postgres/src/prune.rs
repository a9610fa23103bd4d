//! Deleting what ended long ago.

use chongming_core::Timestamp;
use chongming_core::store::{Now, PruneRequest};

use crate::codes::FIRST_ENDED;
use crate::connection::Link;
use crate::error::Result;
use crate::row::{Time, get, given, limit, unsigned};

/// Tasks deleted in one transaction: locks are held for milliseconds.
pub(crate) const CHUNK: usize = 512;

/// Sequence numbers of tasks that may be pruned; ended tasks never change again.
pub(crate) fn ended(link: &mut Link, request: &PruneRequest) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT seq FROM ~tasks WHERE status >= {FIRST_ENDED} AND ended_at < $1 ORDER BY seq LIMIT $2"
    );
    let rows = link.query(&sql, &[&Time(request.before), &limit(request.limit)])?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// Deletes tasks with their trail and commands; returns how many were still there.
pub(crate) fn delete(link: &mut Link, tasks: &[i64]) -> Result<usize> {
    let sql = format!(
        "WITH gone AS (DELETE FROM ~tasks WHERE seq = ANY($1) AND status >= {FIRST_ENDED} \
             RETURNING seq, id), \
         trail AS (DELETE FROM ~transitions t USING gone WHERE t.task_seq = gone.seq), \
         orders AS (DELETE FROM ~commands c USING gone WHERE c.task_id = gone.id) \
         SELECT count(*) FROM gone"
    );
    unsigned(&link.query_one(&sql, &[&tasks])?, 0)
}

/// Dead since before the time, named by no unfinished task, and not their owner's latest.
fn useless_nodes() -> String {
    format!(
        "n.lease_until < $1 AND n.lease_until <= coalesce($2::timestamptz, statement_timestamp()) \
         AND NOT EXISTS (SELECT FROM ~tasks t WHERE t.supervisor = n.incarnation \
             AND t.status < {FIRST_ENDED} AND t.supervisor IS NOT NULL) \
         AND EXISTS (SELECT FROM ~nodes later WHERE later.owner = n.owner \
             AND (later.started_at, later.incarnation) > (n.started_at, n.incarnation))"
    )
}

pub(crate) fn count_nodes(link: &mut Link, before: Timestamp, now: Now) -> Result<usize> {
    let sql = format!("SELECT count(*) FROM ~nodes n WHERE {}", useless_nodes());
    unsigned(&link.query_one(&sql, &[&Time(before), &given(now)])?, 0)
}

/// Deleting one row never makes another useful or useless: an owner's latest is never among them.
pub(crate) fn delete_nodes(link: &mut Link, before: Timestamp, now: Now) -> Result<usize> {
    let sql = format!("DELETE FROM ~nodes n WHERE {} RETURNING n.pid", useless_nodes());
    Ok(link.query(&sql, &[&Time(before), &given(now)])?.len())
}
