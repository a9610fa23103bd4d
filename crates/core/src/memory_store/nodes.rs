//! Node rows and their leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::id::IncarnationId;
use crate::snapshot::TaskSnapshot;
use crate::store::{Beat, Node, NodeRow};
use crate::text::Text;
use crate::time::Timestamp;

#[derive(Default)]
pub(super) struct Nodes(HashMap<IncarnationId, Declared>);

struct Declared {
    node: Node,
    lease_until: Timestamp,
}

impl Declared {
    fn is_alive(&self, now: Timestamp) -> bool {
        self.lease_until > now
    }
}

impl Nodes {
    /// Until when the holder's lease lasts; `None` when it has expired or there is no such node.
    pub(super) fn held(&self, holder: &IncarnationId, now: Timestamp) -> Option<Timestamp> {
        self.0.get(holder).filter(|row| row.is_alive(now)).map(|row| row.lease_until)
    }

    /// The task with its lease as its holder's row says.
    pub(super) fn with_lease(&self, mut task: TaskSnapshot) -> TaskSnapshot {
        let holder = task.supervisor.as_ref().and_then(|holder| self.0.get(holder));
        task.lease_until = holder.map(|row| row.lease_until);
        task
    }

    pub(super) fn beat(&mut self, node: &Node, ttl: Duration, now: Timestamp) -> Beat {
        let lease_until = now.after(ttl);
        let row = Declared { node: node.clone(), lease_until };
        let before = self.0.insert(node.incarnation.clone(), row);
        Beat { lease_until, had_lapsed: before.is_some_and(|row| !row.is_alive(now)) }
    }

    pub(super) fn retire(&mut self, incarnation: &IncarnationId, now: Timestamp) {
        if let Some(row) = self.0.get_mut(incarnation) {
            row.lease_until = row.lease_until.min(now);
        }
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<NodeRow> {
        let row = |row: &Declared| NodeRow {
            node: row.node.clone(),
            lease_until: row.lease_until,
            alive: row.is_alive(now),
        };
        let mut rows: Vec<NodeRow> = self.0.values().map(row).collect();
        rows.sort_by(|a, b| latest_first(&a.node, &b.node));
        rows
    }

    /// Dead since before `time`, named by no unfinished task, and not their owner's latest.
    pub(super) fn useless(
        &self,
        time: Timestamp,
        now: Timestamp,
        named: &HashSet<IncarnationId>,
    ) -> Vec<IncarnationId> {
        let mut latest: HashMap<&Text, &Node> = HashMap::new();
        for Declared { node, .. } in self.0.values() {
            let known = latest.entry(&node.owner).or_insert(node);
            if latest_first(node, known).is_lt() {
                *known = node;
            }
        }
        let is_latest = |node: &Node| {
            latest.get(&node.owner).is_some_and(|latest| latest.incarnation == node.incarnation)
        };
        let useless = self.0.values().filter(|row| {
            row.lease_until < time
                && !row.is_alive(now)
                && !named.contains(&row.node.incarnation)
                && !is_latest(&row.node)
        });
        useless.map(|row| row.node.incarnation.clone()).collect()
    }

    pub(super) fn remove(&mut self, incarnations: &[IncarnationId]) {
        for incarnation in incarnations {
            self.0.remove(incarnation);
        }
    }
}

/// The incarnation decides between equal starts, so that the order is total.
fn latest_first(a: &Node, b: &Node) -> std::cmp::Ordering {
    (b.started_at, &b.incarnation).cmp(&(a.started_at, &a.incarnation))
}
