//! A store that lives as long as its process: for tests, and for programs without a database.

mod commands;
mod nodes;
mod row;
mod tasks;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::id::{CommandId, IncarnationId, TaskId};
use crate::snapshot::TaskSnapshot;
use crate::store::{
    Beat, Command, Count, Doorbell, Entry, EntryError, NewCommand, Node, NodeRow, Now,
    PruneRequest, Pruned, Receipt, StoreError, StoreErrorKind, TaskFilter, TaskPage, TaskQuery,
    TaskStore,
};
use crate::time::{Clock, SystemClock, Timestamp};
use crate::transition::Transition;

use commands::Commands;
use nodes::Nodes;
use tasks::Tasks;

/// Keeps everything in memory, behind one lock.
pub struct InMemoryStore {
    /// `None` once the store is closed.
    rows: Mutex<Option<Rows>>,
    /// Apart from the rows, so that a bell is never rung under their lock.
    bells: Mutex<HashMap<IncarnationId, Vec<Doorbell>>>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Rows {
    tasks: Tasks,
    commands: Commands,
    nodes: Nodes,
    facts: BTreeMap<String, String>,
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl InMemoryStore {
    /// An empty store whose own clock is the machine's.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::default()))
    }

    /// An empty store that takes this clock's wall time for [`Now::Store`].
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let rows = Mutex::new(Some(Rows::default()));
        Self { rows, bells: Mutex::default(), clock }
    }

    /// Runs `work` on the rows, under their lock.
    fn with<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Rows) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match lock(&self.rows).as_mut() {
            Some(rows) => work(rows),
            None => Err(StoreError::closed(operation)),
        }
    }

    fn time(&self, now: Now) -> Timestamp {
        match now {
            Now::Store => self.clock.wall(),
            Now::At(time) => time,
        }
    }
}

/// A panic elsewhere leaves the rows whole: each change is finished before foreign code can run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaskStore for InMemoryStore {
    fn write(&self, entries: &[Entry]) -> Result<Vec<Result<(), EntryError>>, StoreError> {
        for entry in entries {
            entry.check().map_err(|e| {
                let message = format!("task {:?} cannot be stored: {e}", entry.task_id());
                StoreError::new(StoreErrorKind::Invalid, "write", message)
            })?;
        }
        self.with("write", |rows| {
            let Rows { tasks, nodes, .. } = rows;
            let write =
                |entry| tasks.write(entry, |holder, now| nodes.held(holder, self.time(now)));
            Ok(entries.iter().map(write).collect())
        })
    }

    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.with("get", |rows| Ok(rows.tasks.get(id).map(|task| rows.nodes.with_lease(task))))
    }

    fn query(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        self.with("query", |rows| {
            let now = query.filter.lease_expired.map(|(_, now)| self.time(now));
            rows.tasks.page(query, &rows.nodes, now)
        })
    }

    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError> {
        self.with("count", |rows| {
            let now = filter.lease_expired.map(|(_, now)| self.time(now));
            Ok(rows.tasks.count(filter, &rows.nodes, now))
        })
    }

    fn history(
        &self,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>, StoreError> {
        self.with("history", |rows| Ok(rows.tasks.history(id, after, limit)))
    }

    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError> {
        self.with("submit_command", |rows| {
            rows.commands.submit(command);
            Ok(())
        })?;
        let bells = lock(&self.bells).get(&command.holder).cloned().unwrap_or_default();
        bells.iter().for_each(|bell| bell());
        Ok(())
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError> {
        self.with("claim_commands", |rows| {
            Ok(rows.commands.claim(holder, limit, lease, self.time(now)))
        })
    }

    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.with("complete_command", |rows| {
            Ok(rows.commands.complete(id, receipt, self.time(now)))
        })
    }

    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError> {
        self.with("release_command", |rows| Ok(rows.commands.release(id)))
    }

    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError> {
        self.with("commands", |rows| Ok(rows.commands.of_task(task)))
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError> {
        self.with("beat", |rows| Ok(rows.nodes.beat(node, ttl, self.time(now))))
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError> {
        self.with("retire", |rows| {
            rows.nodes.retire(incarnation, self.time(now));
            Ok(())
        })
    }

    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError> {
        self.with("nodes", |rows| Ok(rows.nodes.list(self.time(now))))
    }

    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError> {
        self.with("pin", |rows| {
            Ok(rows.facts.entry(fact.to_owned()).or_insert_with(|| value.to_owned()).clone())
        })
    }

    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError> {
        self.with("pinned", |rows| Ok(rows.facts.get(fact).cloned()))
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError> {
        self.with("prune", |rows| {
            let ended = rows.tasks.ended_before(request.before, request.limit);
            let useless = rows.nodes.useless(
                request.before,
                self.time(now),
                &rows.tasks.unfinished_supervisors(),
            );
            let pruned = Pruned { tasks: ended.len(), nodes: useless.len() };
            if !request.dry_run {
                rows.tasks.remove(&ended);
                rows.commands.remove_of(&ended.into_iter().collect());
                rows.nodes.remove(&useless);
            }
            Ok(pruned)
        })
    }

    fn close(&self) -> Result<(), StoreError> {
        let rows = lock(&self.rows).take();
        let bells = std::mem::take(&mut *lock(&self.bells));
        drop((rows, bells)); // outside of both locks: a bell may own anything
        Ok(())
    }

    fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        if lock(&self.rows).is_some() {
            lock(&self.bells).entry(holder.clone()).or_default().push(bell);
        }
    }
}
