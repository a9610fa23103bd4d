//! Task rows and their trails.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map};

use crate::id::{IncarnationId, TaskId};
use crate::memory_store::nodes::Nodes;
use crate::snapshot::TaskSnapshot;
use crate::status::StatusSet;
use crate::store::{
    Count, Cursor, Entry, EntryError, Now, StoreError, StoreErrorKind, TaskFilter, TaskPage,
    TaskQuery, Touch,
};
use crate::time::Timestamp;
use crate::transition::Transition;

/// Rows by id, which is how they are written: one look-up each.
#[derive(Default)]
pub(super) struct Tasks {
    rows: HashMap<TaskId, Box<Row>>,
    /// By the sequence in which they were created: the order of pages.
    order: BTreeMap<u64, TaskId>,
    /// What most queries ask for, so that ended tasks cost them nothing.
    unfinished: BTreeSet<u64>,
    last: u64,
}

struct Row {
    seq: u64,
    snapshot: TaskSnapshot,
    /// Ascending versions.
    trail: Vec<Transition>,
}

impl Tasks {
    /// Applies one entry; `held` says until when a holder's lease lasts, if it does.
    pub(super) fn write(
        &mut self,
        entry: &Entry,
        held: impl Fn(&IncarnationId, Now) -> Option<Timestamp>,
    ) -> Result<(), EntryError> {
        match entry {
            Entry::Create { snapshot, transitions } => self.create(snapshot, transitions),
            Entry::Save { snapshot, expect_version, transitions, if_expired } => {
                let row = self.rows.get_mut(&snapshot.id).ok_or(EntryError::NotFound)?;
                let stored = row.snapshot.status_version;
                if stored != *expect_version {
                    return Err(EntryError::Conflict { stored });
                }
                if snapshot.status_version <= stored {
                    return Err(EntryError::NotNewer);
                }
                let guard = row.snapshot.supervisor.as_ref().zip(*if_expired);
                if let Some(until) = guard.and_then(|(holder, now)| held(holder, now)) {
                    return Err(EntryError::LeaseHeld { until });
                }
                let was_terminal = row.snapshot.status.is_terminal();
                row.save(snapshot, transitions);
                match (was_terminal, snapshot.status.is_terminal()) {
                    (false, true) => drop(self.unfinished.remove(&row.seq)),
                    (true, false) => drop(self.unfinished.insert(row.seq)),
                    (false, false) | (true, true) => {}
                }
                Ok(())
            }
            Entry::Touch(touch) => {
                let row = self.rows.get_mut(&touch.task_id).ok_or(EntryError::NotFound)?;
                row.touch(touch);
                Ok(())
            }
        }
    }

    fn create(&mut self, task: &TaskSnapshot, trail: &[Transition]) -> Result<(), EntryError> {
        let hash_map::Entry::Vacant(place) = self.rows.entry(task.id.clone()) else {
            return Err(EntryError::Exists);
        };
        self.last += 1;
        let (seq, trail_rows) = (self.last, Vec::with_capacity(trail.len()));
        let row = place.insert(Box::new(Row { seq, snapshot: task.clone(), trail: trail_rows }));
        row.snapshot.lease_until = None;
        row.snapshot.progress = None;
        row.snapshot.last_heartbeat_at = None;
        row.append(trail);
        self.order.insert(seq, task.id.clone());
        if !task.status.is_terminal() {
            self.unfinished.insert(seq);
        }
        Ok(())
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<TaskSnapshot> {
        self.rows.get(id).map(|row| row.snapshot.clone())
    }

    pub(super) fn history(&self, id: &TaskId, after: u64, limit: usize) -> Vec<Transition> {
        let newer = self.rows.get(id).map_or(&[][..], |row| {
            row.trail.get(row.trail.partition_point(|t| t.version <= after)..).unwrap_or_default()
        });
        newer.iter().take(limit).cloned().collect()
    }

    /// Rows that may match, newest first, below `before`.
    fn candidates<'a>(
        &'a self,
        filter: &TaskFilter,
        before: u64,
    ) -> Box<dyn Iterator<Item = (u64, &'a TaskSnapshot)> + 'a> {
        let unfinished = StatusSet::unfinished();
        let row = |(seq, id): (u64, &TaskId)| self.rows.get(id).map(|row| (seq, &row.snapshot));
        if filter.statuses.is_some_and(|set| set.iter().all(|s| unfinished.contains(s))) {
            let ids = |seq: &u64| self.order.get(seq).map(|id| (*seq, id));
            Box::new(self.unfinished.range(..before).rev().filter_map(ids).filter_map(row))
        } else {
            let newest = self.order.range(..before).rev();
            Box::new(newest.map(|(seq, id)| (*seq, id)).filter_map(row))
        }
    }

    pub(super) fn page(
        &self,
        query: &TaskQuery,
        nodes: &Nodes,
        now: Option<Timestamp>,
    ) -> Result<TaskPage, StoreError> {
        let invalid = |message| StoreError::new(StoreErrorKind::Invalid, "query", message);
        if query.limit == 0 {
            return Err(invalid("a page of 0 tasks was asked for; ask for at least 1".to_owned()));
        }
        let before = match &query.after {
            None => u64::MAX,
            Some(Cursor(text)) => text.parse().map_err(|_| {
                let text = text.chars().take(60).collect::<String>();
                invalid(format!("{text:?} is no cursor of this store; take one from a page"))
            })?,
        };
        let mut matching = self
            .candidates(&query.filter, before)
            .filter(|(_, task)| matches(&query.filter, task, nodes, now));
        let mut page = TaskPage::default();
        let mut last = 0;
        for (seq, task) in matching.by_ref().take(query.limit) {
            page.tasks.push(nodes.with_lease(task.clone()));
            last = seq;
        }
        page.next = matching.next().map(|_| Cursor(last.to_string().into()));
        Ok(page)
    }

    pub(super) fn count(
        &self,
        filter: &TaskFilter,
        nodes: &Nodes,
        now: Option<Timestamp>,
    ) -> Vec<Count> {
        let mut counts = HashMap::new();
        for (_, task) in self.candidates(filter, u64::MAX) {
            if matches(filter, task, nodes, now) {
                *counts.entry((task.bucket, task.status)).or_insert(0) += 1;
            }
        }
        counts
            .into_iter()
            .map(|((bucket, status), tasks)| Count { bucket, status, tasks })
            .collect()
    }

    pub(super) fn ended_before(&self, time: Timestamp, limit: usize) -> Vec<TaskId> {
        let ended =
            self.rows.values().map(|row| &row.snapshot).filter(|task| {
                task.status.is_terminal() && task.ended_at.is_some_and(|at| at < time)
            });
        ended.map(|task| task.id.clone()).take(limit).collect()
    }

    pub(super) fn unfinished_supervisors(&self) -> HashSet<IncarnationId> {
        let ids = self.unfinished.iter().filter_map(|seq| self.order.get(seq));
        ids.filter_map(|id| self.rows.get(id)?.snapshot.supervisor.clone()).collect()
    }

    /// Removes ended tasks with their trails.
    pub(super) fn remove(&mut self, ids: &[TaskId]) {
        for id in ids {
            if let Some(row) = self.rows.remove(id) {
                self.order.remove(&row.seq);
            }
        }
    }
}

impl Row {
    /// Takes over the new version, but for what only a submission or a touch writes.
    fn save(&mut self, new: &TaskSnapshot, trail: &[Transition]) {
        let old = std::mem::replace(&mut self.snapshot, new.clone());
        self.snapshot.name = old.name;
        self.snapshot.bucket = old.bucket;
        self.snapshot.bucket_key = old.bucket_key;
        self.snapshot.created_at = old.created_at;
        self.snapshot.progress = old.progress;
        self.snapshot.last_heartbeat_at = old.last_heartbeat_at;
        self.snapshot.lease_until = None;
        self.append(trail);
    }

    fn touch(&mut self, touch: &Touch) {
        if let Some(progress) = &touch.progress {
            self.snapshot.progress = Some(progress.clone());
        }
        if touch.heartbeat_at.is_some() {
            self.snapshot.last_heartbeat_at = touch.heartbeat_at;
        }
    }

    fn append(&mut self, trail: &[Transition]) {
        for transition in trail {
            if self.trail.last().is_none_or(|last| last.version < transition.version) {
                self.trail.push(transition.clone());
            } else if let Err(place) =
                self.trail.binary_search_by_key(&transition.version, |t| t.version)
            {
                self.trail.insert(place, transition.clone());
            }
        }
    }
}

fn matches(
    filter: &TaskFilter,
    task: &TaskSnapshot,
    nodes: &Nodes,
    now: Option<Timestamp>,
) -> bool {
    let TaskFilter {
        statuses,
        buckets,
        tags,
        name,
        owner,
        supervisor,
        lease_expired,
        unchanged_since,
        text,
    } = filter;
    let expired = || {
        let holder = task.supervisor.as_ref().zip(now);
        holder.is_none_or(|(holder, now)| nodes.held(holder, now).is_none())
    };
    let contains = |field: &str| text.as_ref().is_none_or(|text| field.contains(&**text));
    statuses.is_none_or(|set| set.contains(task.status))
        && buckets.as_ref().is_none_or(|set| task.bucket.is_some_and(|bucket| set.contains(bucket)))
        && tags.iter().all(|tag| task.tags.contains(tag))
        && name.as_ref().is_none_or(|name| *name == task.name)
        && owner.as_ref().is_none_or(|owner| *owner == task.owner)
        && (supervisor.is_none() || *supervisor == task.supervisor)
        && lease_expired.is_none_or(|(wanted, _)| expired() == wanted)
        && unchanged_since.is_none_or(|time| task.updated_at < time)
        && (contains(task.id.as_str()) || task.label.as_deref().is_some_and(contains))
}
