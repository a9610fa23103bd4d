//! Node rows with their leases, and store-wide facts.

use std::num::NonZeroU32;
use std::time::Duration;

use chongming_core::store::{Beat, Node, NodeRow, Now};
use chongming_core::{BucketSet, IncarnationId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::row::{incarnation, optional_text, resolve, text, time, unreadable};

pub(crate) fn beat(
    connection: &Connection,
    node: &Node,
    ttl: Duration,
    now: Now,
) -> rusqlite::Result<Beat> {
    let now = resolve(now);
    let lease_until = now.after(ttl);
    let before = connection
        .prepare_cached("SELECT lease_until FROM nodes WHERE incarnation = ?1")?
        .query_row([node.incarnation.as_str()], |row| time(row, 0))
        .optional()?;
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO nodes (incarnation, owner, host, pid, num_buckets, owned_buckets, artifacts, \
         started_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    statement.execute(params![
        node.incarnation.as_str(),
        &*node.owner,
        &*node.host,
        node.pid,
        node.num_buckets.get(),
        node.owned_buckets.as_ref().map(ToString::to_string),
        node.artifacts.as_deref(),
        node.started_at.as_micros(),
        lease_until.as_micros(),
    ])?;
    Ok(Beat { lease_until, had_lapsed: before.is_some_and(|until| until <= now) })
}

pub(crate) fn retire(
    connection: &Connection,
    id: &IncarnationId,
    now: Now,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "UPDATE nodes SET lease_until = min(lease_until, ?2) WHERE incarnation = ?1",
    )?;
    statement.execute(params![id.as_str(), resolve(now).as_micros()])?;
    Ok(())
}

pub(crate) fn list(connection: &Connection, now: Now) -> rusqlite::Result<Vec<NodeRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT incarnation, owner, host, pid, num_buckets, owned_buckets, artifacts, started_at, lease_until \
         FROM nodes ORDER BY started_at DESC, incarnation DESC",
    )?;
    let now = resolve(now);
    let rows = statement.query_map([], |row| {
        let num_buckets = NonZeroU32::new(row.get(4)?);
        let node = Node {
            incarnation: incarnation(row, 0)?,
            owner: text(row, 1)?,
            host: text(row, 2)?,
            pid: row.get(3)?,
            num_buckets: num_buckets.ok_or_else(|| unreadable(4, "a node has 0 buckets"))?,
            owned_buckets: match row.get_ref(5)?.as_str_or_null()? {
                None => None,
                Some("") => Some(BucketSet::default()),
                Some(set) => Some(set.parse().map_err(|e| unreadable(5, e))?),
            },
            artifacts: optional_text(row, 6)?,
            started_at: time(row, 7)?,
        };
        let lease_until = time(row, 8)?;
        Ok(NodeRow { node, lease_until, alive: lease_until > now })
    })?;
    rows.collect()
}

pub(crate) fn pinned(connection: &Connection, fact: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT value FROM facts WHERE fact = ?1")?;
    statement.query_row([fact], |row| row.get(0)).optional()
}

/// The first writer wins; everybody is told what stands.
pub(crate) fn pin(connection: &Connection, fact: &str, value: &str) -> rusqlite::Result<String> {
    let mut statement =
        connection.prepare_cached("INSERT OR IGNORE INTO facts (fact, value) VALUES (?1, ?2)")?;
    statement.execute([fact, value])?;
    pinned(connection, fact)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}
