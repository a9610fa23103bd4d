//! Node rows with their leases, and facts.

use std::time::Duration;

use chongming_core::store::{Beat, Node, NodeRow};
use chongming_core::{IncarnationId, Timestamp};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::error::Result;
use super::records::{NodeRecord, decode, encode};
use super::tables::{FACTS, NODES};

// guide: beat
pub(super) fn beat(
    transaction: &WriteTransaction,
    node: &Node,
    ttl: Duration,
    now: Timestamp,
) -> Result<Beat> {
    let mut nodes = transaction.open_table(NODES)?;
    let before = match nodes.get(node.incarnation.as_str())? {
        Some(row) => Some(decode::<NodeRecord>(row.value())?),
        None => None,
    };
    let had_lapsed = before.is_some_and(|row| Timestamp::from_micros(row.lease_until) <= now);
    let lease_until = now.after(ttl);
    let record = encode(&NodeRecord::of(node, lease_until))?;
    nodes.insert(node.incarnation.as_str(), record.as_slice())?;
    Ok(Beat { lease_until, had_lapsed })
}
// guide: end

pub(super) fn retire(
    transaction: &WriteTransaction,
    id: &IncarnationId,
    now: Timestamp,
) -> Result<()> {
    let mut nodes = transaction.open_table(NODES)?;
    let Some(mut record) =
        nodes.get(id.as_str())?.map(|row| decode::<NodeRecord>(row.value())).transpose()?
    else {
        return Ok(());
    };
    record.lease_until = record.lease_until.min(now.as_micros());
    nodes.insert(id.as_str(), encode(&record)?.as_slice())?;
    Ok(())
}

pub(super) fn list(transaction: &ReadTransaction, now: Timestamp) -> Result<Vec<NodeRow>> {
    let mut rows = Vec::new();
    for row in transaction.open_table(NODES)?.iter()? {
        let (incarnation, row) = row?;
        let record: NodeRecord = decode(row.value())?;
        let lease_until = Timestamp::from_micros(record.lease_until);
        let node = record.into_node(incarnation.value())?;
        rows.push(NodeRow { node, lease_until, alive: lease_until > now });
    }
    rows.sort_by(|a, b| {
        let key = |row: &NodeRow| (row.node.started_at, row.node.incarnation.clone());
        key(b).cmp(&key(a))
    });
    Ok(rows)
}

pub(super) fn pin(transaction: &WriteTransaction, fact: &str, value: &str) -> Result<String> {
    let mut facts = transaction.open_table(FACTS)?;
    let stands = facts.get(fact)?.map(|stands| stands.value().to_owned());
    match stands {
        Some(stands) => Ok(stands),
        None => {
            facts.insert(fact, value)?;
            Ok(value.to_owned())
        }
    }
}

pub(super) fn pinned(transaction: &ReadTransaction, fact: &str) -> Result<Option<String>> {
    Ok(transaction.open_table(FACTS)?.get(fact)?.map(|value| value.value().to_owned()))
}
