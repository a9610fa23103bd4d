//! One incarnation of a node: the rows of `nodes`.

use chongming_core::store::NodeRow;
use serde::Serialize;

use crate::output::color::Tone;
use crate::output::table::{Cell, Column, Table};

/// A node as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct NodeJson<'a> {
    owner: &'a str,
    incarnation: &'a str,
    host: &'a str,
    pid: u32,
    alive: bool,
    lease_until: String,
    num_buckets: u32,
    owned_buckets: Option<&'a [u32]>,
    started_at: String,
}

impl<'a> From<&'a NodeRow> for NodeJson<'a> {
    fn from(row: &'a NodeRow) -> Self {
        let node = &row.node;
        Self {
            owner: &node.owner,
            incarnation: node.incarnation.as_str(),
            host: &node.host,
            pid: node.pid,
            alive: row.alive,
            lease_until: row.lease_until.to_string(),
            num_buckets: node.num_buckets.get(),
            owned_buckets: node.owned_buckets.as_ref().map(|owned| owned.as_slice()),
            started_at: node.started_at.to_string(),
        }
    }
}

/// The table of `nodes`.
pub(crate) fn table<'a>(rows: impl IntoIterator<Item = &'a NodeRow>) -> Table<7> {
    let mut table = Table::new([
        Column::key("OWNER"),
        Column::key("ALIVE"),
        Column::text("HOST"),
        Column::key("PID"),
        Column::text("BUCKETS"),
        Column::key("STARTED_AT"),
        Column::text("INCARNATION"),
    ]);
    for row in rows {
        let node = &row.node;
        let alive = if row.alive { ("yes", Tone::Good) } else { ("no", Tone::Muted) };
        let buckets = match &node.owned_buckets {
            Some(owned) => format!("{owned} of {}", node.num_buckets),
            None => format!("all {}", node.num_buckets),
        };
        table.row([
            (&*node.owner).into(),
            Cell::toned(alive.0, alive.1),
            (&*node.host).into(),
            node.pid.to_string().into(),
            buckets.into(),
            node.started_at.to_string().into(),
            node.incarnation.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples::at;
    use chongming_core::store::Node;
    use chongming_core::{DEFAULT_NUM_BUCKETS, IncarnationId};
    use serde_json::json;

    fn row(owned: Option<&str>, alive: bool) -> NodeRow {
        let node = Node {
            owner: "node-a".into(),
            incarnation: IncarnationId::new("i-1").unwrap(),
            host: "box".into(),
            pid: 42,
            num_buckets: DEFAULT_NUM_BUCKETS,
            owned_buckets: owned.map(|owned| owned.parse().unwrap()),
            artifacts: None,
            started_at: at(0),
        };
        NodeRow { node, lease_until: at(30), alive }
    }

    #[test]
    fn buckets_are_a_list_for_scripts_and_ranges_for_people() {
        assert_eq!(
            json!(NodeJson::from(&row(Some("0-2"), true))),
            json!({
                "owner": "node-a", "incarnation": "i-1", "host": "box", "pid": 42, "alive": true,
                "lease_until": "2026-09-21T14:13:50.000000Z", "num_buckets": 64,
                "owned_buckets": [0, 1, 2], "started_at": "2026-09-21T14:13:20.000000Z",
            })
        );
        assert_eq!(
            table(&[row(Some("0-2"), true), row(None, false)]).lines(None, false),
            [
                "OWNER   ALIVE  HOST  PID  BUCKETS    STARTED_AT                   INCARNATION",
                "node-a  yes    box   42   0-2 of 64  2026-09-21T14:13:20.000000Z  i-1",
                "node-a  no     box   42   all 64     2026-09-21T14:13:20.000000Z  i-1",
            ]
        );
    }
}
