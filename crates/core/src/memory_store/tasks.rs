//! Task rows, by id and in the order of their creation.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque, hash_map};
use std::sync::Arc;

use crate::id::{IdHashes, IncarnationId, TaskId};
use crate::memory_store::nodes::Nodes;
use crate::memory_store::row::Row;
use crate::snapshot::TaskSnapshot;
use crate::status::StatusSet;
use crate::store::{
    Count, Cursor, Entry, EntryError, Now, StoreError, StoreErrorKind, TaskFilter, TaskPage,
    TaskQuery,
};
use crate::time::Timestamp;
use crate::transition::Transition;

#[derive(Default)]
pub(super) struct Tasks {
    /// In the order of creation, which is the order of pages; `None` where one was pruned.
    rows: VecDeque<Option<Row>>,
    /// The sequence number of the first of them.
    first: u64,
    by_id: HashMap<TaskId, u64, IdHashes>,
    /// What most queries ask for, so that ended tasks cost them nothing.
    unfinished: BTreeSet<u64>,
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
                let (seq, row) = self.row_mut(&snapshot.id).ok_or(EntryError::NotFound)?;
                let stored = row.state().status_version;
                if stored != *expect_version {
                    return Err(EntryError::Conflict { stored });
                }
                if snapshot.status_version <= stored {
                    return Err(EntryError::NotNewer);
                }
                let guard = row.state().supervisor.as_ref().zip(*if_expired);
                if let Some(until) = guard.and_then(|(holder, now)| held(holder, now)) {
                    return Err(EntryError::LeaseHeld { until });
                }
                let was_terminal = row.state().status.is_terminal();
                row.save(snapshot, transitions);
                match (was_terminal, snapshot.status.is_terminal()) {
                    (false, true) => drop(self.unfinished.remove(&seq)),
                    (true, false) => drop(self.unfinished.insert(seq)),
                    (false, false) | (true, true) => {}
                }
                Ok(())
            }
            Entry::Touch(touch) => {
                let (_, row) = self.row_mut(&touch.task_id).ok_or(EntryError::NotFound)?;
                row.touch(touch);
                Ok(())
            }
        }
    }

    fn create(&mut self, task: &Arc<TaskSnapshot>, trail: &[Transition]) -> Result<(), EntryError> {
        let seq = self.first + self.rows.len() as u64;
        match self.by_id.entry(task.id.clone()) {
            hash_map::Entry::Occupied(_) => return Err(EntryError::Exists),
            hash_map::Entry::Vacant(place) => place.insert(seq),
        };
        self.rows.push_back(Some(Row::new(task, trail)));
        if !task.status.is_terminal() {
            self.unfinished.insert(seq);
        }
        Ok(())
    }

    fn place(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first)?).ok()
    }

    fn at(&self, seq: u64) -> Option<&Row> {
        self.rows.get(self.place(seq)?)?.as_ref()
    }

    fn row(&self, id: &TaskId) -> Option<&Row> {
        self.at(*self.by_id.get(id)?)
    }

    fn row_mut(&mut self, id: &TaskId) -> Option<(u64, &mut Row)> {
        let seq = *self.by_id.get(id)?;
        let place = self.place(seq)?;
        Some((seq, self.rows.get_mut(place)?.as_mut()?))
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<TaskSnapshot> {
        self.row(id).map(Row::task)
    }

    pub(super) fn history(&self, id: &TaskId, after: u64, limit: usize) -> Vec<Transition> {
        self.row(id).map_or_else(Vec::new, |row| row.history(after, limit))
    }

    /// Rows that may match, newest first, below `before`.
    fn candidates<'a>(
        &'a self,
        filter: &TaskFilter,
        before: u64,
    ) -> Box<dyn Iterator<Item = (u64, &'a Row)> + 'a> {
        let unfinished = StatusSet::unfinished();
        if filter.statuses.is_some_and(|set| set.iter().all(|s| unfinished.contains(s))) {
            let seqs = self.unfinished.range(..before).rev();
            Box::new(seqs.filter_map(|seq| Some((*seq, self.at(*seq)?))))
        } else {
            let older = self.place(before).unwrap_or(0).min(self.rows.len());
            let rows = self.rows.range(..older).enumerate().rev();
            Box::new(
                rows.filter_map(|(place, row)| Some((self.first + place as u64, row.as_ref()?))),
            )
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
            .filter(|(_, row)| matches(&query.filter, row.state(), nodes, now));
        let mut page = TaskPage::default();
        let mut last = 0;
        for (seq, row) in matching.by_ref().take(query.limit) {
            page.tasks.push(nodes.with_lease(row.task()));
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
        for (_, row) in self.candidates(filter, u64::MAX) {
            let task = row.state();
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
            self.rows.iter().flatten().map(Row::state).filter(|task| {
                task.status.is_terminal() && task.ended_at.is_some_and(|at| at < time)
            });
        ended.map(|task| task.id.clone()).take(limit).collect()
    }

    pub(super) fn unfinished_supervisors(&self) -> HashSet<IncarnationId> {
        let rows = self.unfinished.iter().filter_map(|seq| self.at(*seq));
        rows.filter_map(|row| row.state().supervisor.clone()).collect()
    }

    /// Removes ended tasks with their trails.
    pub(super) fn remove(&mut self, ids: &[TaskId]) {
        for id in ids {
            if let Some(seq) = self.by_id.remove(id)
                && let Some(row) = self.place(seq).and_then(|place| self.rows.get_mut(place))
            {
                *row = None;
            }
        }
        while let Some(None) = self.rows.front() {
            self.rows.pop_front();
            self.first += 1;
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
