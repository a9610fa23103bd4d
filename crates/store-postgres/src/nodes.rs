//! Node rows with their leases, and store-wide facts.

use std::num::NonZeroU32;
use std::time::Duration;

use chongming_core::store::{Beat, Node, NodeRow, Now};
use chongming_core::{BucketSet, IncarnationId};

use crate::connection::Link;
use crate::error::Result;
use crate::row::{
    Time, get, given, incarnation, micros, optional_text, text, time, unreadable, unsigned,
};

/// Each part reads the one before it: the row is locked first, then the clock is read, then the lease is
/// judged and renewed.
const BEAT: &str = "WITH before AS MATERIALIZED \
        (SELECT lease_until FROM ~nodes WHERE incarnation = $1 FOR UPDATE), \
    held AS MATERIALIZED (SELECT max(lease_until) AS until FROM before), \
    clock AS MATERIALIZED \
        (SELECT until, coalesce($10::timestamptz, clock_timestamp()) AS now FROM held) \
    INSERT INTO ~nodes AS n (incarnation, owner, host, pid, num_buckets, owned_buckets, artifacts, \
        started_at, lease_until) \
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, now + $9::bigint * interval '1 microsecond' FROM clock \
    ON CONFLICT (incarnation) DO UPDATE SET owner = EXCLUDED.owner, host = EXCLUDED.host, \
        pid = EXCLUDED.pid, num_buckets = EXCLUDED.num_buckets, \
        owned_buckets = EXCLUDED.owned_buckets, artifacts = EXCLUDED.artifacts, \
        started_at = EXCLUDED.started_at, lease_until = EXCLUDED.lease_until \
    RETURNING lease_until, (SELECT coalesce(until <= now, FALSE) FROM clock)";

pub(crate) fn beat(link: &mut Link, node: &Node, ttl: Duration, now: Now) -> Result<Beat> {
    let owned = node.owned_buckets.as_ref().map(ToString::to_string);
    let row = link.query_one(
        BEAT,
        &[
            &node.incarnation.as_str(),
            &&*node.owner,
            &&*node.host,
            &i64::from(node.pid),
            &i64::from(node.num_buckets.get()),
            &owned,
            &node.artifacts.as_deref(),
            &Time(node.started_at),
            &micros(ttl),
            &given(now),
        ],
    )?;
    Ok(Beat { lease_until: time(&row, 0)?, had_lapsed: get(&row, 1)? })
}

pub(crate) fn retire(link: &mut Link, id: &IncarnationId, now: Now) -> Result<()> {
    let sql = "UPDATE ~nodes SET lease_until = \
               least(lease_until, coalesce($2::timestamptz, clock_timestamp())) WHERE incarnation = $1";
    link.query(sql, &[&id.as_str(), &given(now)])?;
    Ok(())
}

pub(crate) fn list(link: &mut Link, now: Now) -> Result<Vec<NodeRow>> {
    let sql = "SELECT incarnation, owner, host, pid, num_buckets, owned_buckets, artifacts, started_at, \
               lease_until, lease_until > coalesce($1::timestamptz, statement_timestamp()) \
               FROM ~nodes ORDER BY started_at DESC, incarnation DESC";
    let rows = link.query(sql, &[&given(now)])?;
    let rows = rows.iter().map(|row| {
        let num_buckets = NonZeroU32::new(unsigned(row, 4)?);
        let node = Node {
            incarnation: incarnation(row, 0)?,
            owner: text(row, 1)?,
            host: text(row, 2)?,
            pid: unsigned(row, 3)?,
            num_buckets: num_buckets.ok_or_else(|| unreadable("a node has 0 buckets"))?,
            owned_buckets: match get::<Option<&str>>(row, 5)? {
                None => None,
                Some("") => Some(BucketSet::default()),
                Some(set) => Some(set.parse().map_err(unreadable)?),
            },
            artifacts: optional_text(row, 6)?,
            started_at: time(row, 7)?,
        };
        Ok(NodeRow { node, lease_until: time(row, 8)?, alive: get(row, 9)? })
    });
    rows.collect()
}

pub(crate) fn pinned(link: &mut Link, fact: &str) -> Result<Option<String>> {
    let row = link.query_opt("SELECT value FROM ~facts WHERE fact = $1", &[&fact])?;
    row.map(|row| get(&row, 0)).transpose()
}

/// The first writer wins; everybody is told what stands.
pub(crate) fn pin(link: &mut Link, fact: &str, value: &str) -> Result<String> {
    if let Some(value) = pinned(link, fact)? {
        return Ok(value); // a fact never changes
    }
    let sql = "INSERT INTO ~facts (fact, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    link.query(sql, &[&fact, &value])?;
    pinned(link, fact)?.ok_or_else(|| unreadable(format!("the fact {fact:?} is not there")))
}
