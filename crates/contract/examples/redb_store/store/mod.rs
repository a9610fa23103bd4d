//! The store itself: transactions, the clock, and the trait's calls.

mod commands;
mod error;
mod nodes;
mod prune;
mod read;
mod records;
mod tables;
mod write;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chongming_core::store::{
    Beat, Command, Count, Entry, EntryError, NewCommand, Node, NodeRow, Now, PruneRequest, Pruned,
    Receipt, StoreError, StoreErrorKind, TaskFilter, TaskPage, TaskQuery, TaskStore,
};
use chongming_core::{
    Clock, CommandId, IncarnationId, SystemClock, TaskId, TaskSnapshot, Timestamp, Transition,
};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, WriteTransaction};

use error::{Problem, Result};

type Answer<T> = std::result::Result<T, StoreError>;

/// The version of the tables and records that this program writes.
const VERSION: u64 = 1;

// guide: struct
/// A connection. Several of one process share a [`Database`]; a second process cannot open its file.
pub(crate) struct RedbStore {
    /// `None` once closed.
    database: RwLock<Option<Arc<Database>>>,
    clock: SystemClock,
}

impl RedbStore {
    /// Opens the file, or makes it.
    pub(crate) fn create(path: &Path) -> Answer<Arc<Database>> {
        let database = Database::create(path).map_err(|error| Problem::from(error).told("open"))?;
        prepare(&database)?;
        Ok(Arc::new(database))
    }

    /// A store on a database that [`create`](Self::create) has opened.
    pub(crate) fn on(database: Arc<Database>) -> Self {
        Self { database: RwLock::new(Some(database)), clock: SystemClock::default() }
    }

    fn database(&self, operation: &'static str) -> Answer<Arc<Database>> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner).clone();
        database.ok_or_else(|| StoreError::closed(operation))
    }

    /// Reads, all of it at one moment.
    fn read<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&ReadTransaction) -> Result<T>,
    ) -> Answer<T> {
        let database = self.database(operation)?;
        let read = || work(&database.begin_read()?);
        read().map_err(|problem: Problem| problem.told(operation))
    }

    /// Changes, alone: `redb` lets one transaction write at a time. Dropped without a commit, as after an
    /// error, it has changed nothing.
    fn change<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&WriteTransaction) -> Result<T>,
    ) -> Answer<T> {
        let database = self.database(operation)?;
        let change = || {
            let transaction = database.begin_write()?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        change().map_err(|problem: Problem| problem.told(operation))
    }

    /// To be asked inside of a transaction that writes: what it decides then holds until the commit.
    fn time(&self, now: Now) -> Timestamp {
        match now {
            Now::Store => self.clock.wall(),
            Now::At(time) => time,
        }
    }
}
// guide: end

/// Makes the tables; refuses those of a newer program.
fn prepare(database: &Database) -> Answer<()> {
    let prepare = || -> Result<u64> {
        let transaction = database.begin_write()?;
        tables::make(&transaction)?;
        let version = {
            let mut numbers = transaction.open_table(tables::NUMBERS)?;
            let found = numbers.get("version")?.map(|version| version.value());
            numbers.insert("version", found.unwrap_or(VERSION))?;
            found.unwrap_or(VERSION)
        };
        transaction.commit()?;
        Ok(version)
    };
    match prepare().map_err(|problem| problem.told("open"))? {
        VERSION => Ok(()),
        other => Err(StoreError::new(
            StoreErrorKind::Foreign,
            "open",
            format!("the file has version {other}; this program knows {VERSION}"),
        )),
    }
}

impl TaskStore for RedbStore {
    fn write(&self, entries: &[Entry]) -> Answer<Vec<std::result::Result<(), EntryError>>> {
        if let Some((entry, error)) =
            entries.iter().find_map(|entry| Some((entry, entry.check().err()?)))
        {
            let message = format!("task {:?} cannot be stored: {error}", entry.task_id());
            return Err(StoreError::new(StoreErrorKind::Invalid, "write", message));
        }
        self.change("write", |transaction| {
            write::write(transaction, entries, self.time(Now::Store))
        })
    }

    fn get(&self, id: &TaskId) -> Answer<Option<TaskSnapshot>> {
        self.read("get", |transaction| read::get(transaction, id))
    }

    fn query(&self, query: &TaskQuery) -> Answer<TaskPage> {
        let now = query.filter.lease_expired.map(|(_, now)| self.time(now));
        self.read("query", |transaction| read::page(transaction, query, now))
    }

    fn count(&self, filter: &TaskFilter) -> Answer<Vec<Count>> {
        let now = filter.lease_expired.map(|(_, now)| self.time(now));
        self.read("count", |transaction| read::count(transaction, filter, now))
    }

    fn history(&self, id: &TaskId, after: u64, limit: usize) -> Answer<Vec<Transition>> {
        self.read("history", |transaction| read::history(transaction, id, after, limit))
    }

    fn submit_command(&self, command: &NewCommand) -> Answer<()> {
        self.change("submit_command", |transaction| commands::submit(transaction, command))
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Answer<Vec<Command>> {
        self.change("claim_commands", |transaction| {
            commands::claim(transaction, holder, limit, lease, self.time(now))
        })
    }

    fn complete_command(&self, id: &CommandId, receipt: &Receipt, now: Now) -> Answer<bool> {
        self.change("complete_command", |transaction| {
            commands::complete(transaction, id, receipt, self.time(now))
        })
    }

    fn release_command(&self, id: &CommandId) -> Answer<bool> {
        self.change("release_command", |transaction| commands::release(transaction, id))
    }

    fn commands(&self, task: &TaskId) -> Answer<Vec<Command>> {
        self.read("commands", |transaction| commands::of_task(transaction, task))
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Answer<Beat> {
        self.change("beat", |transaction| nodes::beat(transaction, node, ttl, self.time(now)))
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Answer<()> {
        self.change("retire", |transaction| nodes::retire(transaction, incarnation, self.time(now)))
    }

    fn nodes(&self, now: Now) -> Answer<Vec<NodeRow>> {
        self.read("nodes", |transaction| nodes::list(transaction, self.time(now)))
    }

    fn pin(&self, fact: &str, value: &str) -> Answer<String> {
        self.change("pin", |transaction| nodes::pin(transaction, fact, value))
    }

    fn pinned(&self, fact: &str) -> Answer<Option<String>> {
        self.read("pinned", |transaction| nodes::pinned(transaction, fact))
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Answer<Pruned> {
        if !request.dry_run {
            return self
                .change("prune", |transaction| prune::prune(transaction, request, self.time(now)));
        }
        let database = self.database("prune")?;
        let rehearse = || {
            let transaction = database.begin_write()?;
            let pruned = prune::prune(&transaction, request, self.time(now))?;
            transaction.abort()?;
            Ok(pruned)
        };
        rehearse().map_err(|problem: Problem| problem.told("prune"))
    }

    fn close(&self) -> Answer<()> {
        drop(self.database.write().unwrap_or_else(PoisonError::into_inner).take());
        Ok(())
    }
}
