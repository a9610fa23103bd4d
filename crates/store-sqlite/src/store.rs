//! The store: connections, and the trait's calls on them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chongming_core::store::{
    Beat, Command, Count, Doorbell, Entry, EntryError, NewCommand, Node, NodeRow, Now,
    PruneRequest, Pruned, Receipt, StoreError, StoreErrorKind, TaskFilter, TaskPage, TaskQuery,
    TaskStore,
};
use chongming_core::{CommandId, IncarnationId, TaskId, TaskSnapshot, Transition};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB};

use crate::connection::{
    Place, begin_to_read, connect, consistently, immediately, patiently, prepare_writer,
};
use crate::doorbell::Doorbells;
use crate::error::{READ_ONLY, Subject, is_busy};
use crate::file::{self, Files, Found, Registration};
use crate::options::Options;
use crate::{commands, nodes, prune, query, schema, write};

type Stored<T> = Result<T, StoreError>;

/// Idle connections kept for readers; more are opened while more read at once.
const IDLE_READERS: usize = 4;

/// Keeps tasks in an SQLite database.
///
/// Any number of processes may open one file. Each store has one connection that writes, opened at the first
/// write, and others that read beside it. The last one to close moves the log into the file.
pub struct SqliteStore {
    /// `None`: in memory.
    path: Option<PathBuf>,
    options: Options,
    subject: Subject,
    /// May the file be made?
    create: bool,
    connections: Mutex<Connections>,
    writer: Mutex<Option<Writer>>,
    doorbells: Doorbells,
    /// Declared last: given up after the connections.
    _registration: Option<Registration>,
}

/// The connection that writes, and the files that it had found at the path; none in memory.
struct Writer {
    connection: Connection,
    files: Option<Files>,
}

/// Connections for reading, as long as the store is open.
enum Connections {
    Open { idle: Vec<Connection> },
    Closed,
}

impl SqliteStore {
    /// Opens a database; makes it where there is none, or an empty file.
    ///
    /// # Errors
    /// The path holds something else (which is not touched), a database of a newer version, or cannot be
    /// read or written.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let mut store = Self::at(path.as_ref(), options, |_, _| Ok(()))?;
        store.create = true;
        // Only the write lock shows that the log beside the file may be written too. Whoever has it just now may.
        store.writer("open", |writer| {
            match immediately(&mut *writer, Duration::ZERO, |_| Ok(())) {
                Err(error) if is_busy(&error) => Ok(()),
                done => done,
            }
        })?;
        Ok(store)
    }

    /// Opens a database that exists: for those who only look or ask.
    ///
    /// A database on read-only media can be read; writing to it is `Denied`.
    ///
    /// # Errors
    /// As [`open`](Self::open), and where there is no file, or an empty one.
    pub fn open_existing(path: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let store = Self::at(path.as_ref(), options, |found, subject| match found {
            Found::Ours => Ok(()),
            Found::Missing => {
                let what = "does not exist; check the path, or run a task with it to create it";
                Err(subject.refuse(StoreErrorKind::Foreign, "open", what))
            }
            Found::Empty => {
                let what = "is empty; it becomes a database when the first task is run with it";
                Err(subject.refuse(StoreErrorKind::Foreign, "open", what))
            }
        })?;
        let reader = store.connect_reader().map_err(|e| store.subject.error("open", e))?;
        schema::check(&reader, &store.subject)?;
        store.put_back(reader);
        Ok(store)
    }

    /// A new database in memory: it ends with the store.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        let options = Options::default();
        let subject = Subject { name: "in memory".to_owned(), lock_wait: options.lock_wait };
        let store = Self::new(None, options, subject, None);
        store.writer("open", |_| Ok(()))?;
        Ok(store)
    }

    fn at(
        path: &Path,
        options: Options,
        acceptable: impl FnOnce(Found, &Subject) -> Stored<()>,
    ) -> Stored<Self> {
        let subject = Subject { name: path.display().to_string(), lock_wait: options.lock_wait };
        let path = file::resolve(path, &subject)?;
        let (found, registration) = file::probe(&path, &subject)?;
        acceptable(found, &subject)?;
        Ok(Self::new(Some(path), options, subject, Some(registration)))
    }

    fn new(
        path: Option<PathBuf>,
        options: Options,
        subject: Subject,
        registration: Option<Registration>,
    ) -> Self {
        Self {
            doorbells: Doorbells::new(path.as_deref()),
            path,
            options,
            subject,
            create: false,
            connections: Mutex::new(Connections::Open { idle: Vec::new() }),
            writer: Mutex::new(None),
            _registration: registration,
        }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` on the one connection that writes, opening it first where necessary.
    fn writer<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Stored<T> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*self.connections(), Connections::Closed) {
            return Err(StoreError::closed(operation));
        }
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(self.connect_writer()?),
        };
        let done = work(&mut writer.connection).map_err(|e| self.subject.error(operation, e))?;
        let Some(gone) = writer.files.as_ref().and_then(Files::gone) else { return Ok(done) };
        // SQLite goes on with a file that nobody can find any more. What others have put in its place since then is
        // theirs: closing would otherwise remove their log.
        if gone.is_replaced {
            let leave_it = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let left = writer.connection.set_db_config(leave_it, true);
            left.map_err(|e| self.subject.error(operation, e))?;
        }
        let what = format_args!(
            "cannot be reached any more: {} was deleted or replaced while it was in use; put the file back, or \
             start again",
            gone.path.display()
        );
        Err(self.subject.refuse(StoreErrorKind::Unavailable, operation, what))
    }

    fn connect_writer(&self) -> Stored<Writer> {
        let place = match &self.path {
            None => Place::Memory,
            Some(path) if self.create => Place::Create(path),
            Some(path) => Place::Existing(path),
        };
        let error = |e| self.subject.error("open", e);
        let mut connection = connect(&place).map_err(error)?;
        if connection.is_readonly(MAIN_DB).map_err(error)? {
            // SQLite opened it for reading instead, and would say so at the first write.
            return Err(self.subject.refuse(StoreErrorKind::Denied, "open", READ_ONLY));
        }
        schema::ensure(&mut connection, &self.subject)?;
        patiently(self.options.lock_wait, || prepare_writer(&connection, &self.options))
            .map_err(error)?;
        let files = match &self.path {
            None => None,
            Some(path) => {
                // Only who reads has a log.
                patiently(self.options.lock_wait, || begin_to_read(&connection)).map_err(error)?;
                Some(Files::of(path))
            }
        };
        Ok(Writer { connection, files })
    }

    /// Does `work` in a transaction that holds the write lock from its start.
    fn transaction<T>(
        &self,
        operation: &'static str,
        work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Stored<T> {
        self.writer(operation, |connection| immediately(connection, self.options.lock_wait, work))
    }

    /// Does `work` beside the writer, on what is committed.
    fn read<T>(
        &self,
        operation: &'static str,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Stored<T> {
        if self.path.is_none() {
            return self.writer(operation, |connection| work(connection));
        }
        let idle = match &mut *self.connections() {
            Connections::Closed => return Err(StoreError::closed(operation)),
            Connections::Open { idle } => idle.pop(),
        };
        let error = |e| self.subject.error(operation, e);
        let reader = match idle {
            Some(reader) => reader,
            None => self.connect_reader().map_err(error)?,
        };
        let done = patiently(self.options.lock_wait, || work(&reader)).map_err(error);
        self.put_back(reader);
        done
    }

    fn connect_reader(&self) -> rusqlite::Result<Connection> {
        // Opening alone reads nothing: the first statement shows whether the file can be read.
        let read = |connection: Connection| {
            patiently(self.options.lock_wait, || begin_to_read(&connection))?;
            Ok(connection)
        };
        let Some(path) = &self.path else { return connect(&Place::Memory) };
        let connection = connect(&Place::Existing(path))?;
        if connection.is_readonly(MAIN_DB)? && !file::has_log(path) {
            // Who may not write the file must not leave a log of his own beside it, which its owner could
            // not write. Nobody writes just now: the file is whole.
            return read(connect(&Place::Immutable(path))?);
        }
        match read(connection) {
            Err(error) if is_denied(&error) && !file::has_log(path) => {
                read(connect(&Place::Immutable(path))?).map_err(|_| error)
            }
            done => done,
        }
    }

    /// Keeps the connection for the next reader. One that cannot write is made anew each time, because it
    /// may not see what others write from now on.
    fn put_back(&self, reader: Connection) {
        let useful = reader.is_autocommit() && reader.is_readonly(MAIN_DB).is_ok_and(|only| !only);
        match &mut *self.connections() {
            Connections::Open { idle } if useful && idle.len() < IDLE_READERS => idle.push(reader),
            Connections::Open { .. } | Connections::Closed => {}
        }
    }
}

/// What SQLite says where it may not put a log beside the file.
fn is_denied(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

impl TaskStore for SqliteStore {
    fn write(&self, entries: &[Entry]) -> Result<Vec<Result<(), EntryError>>, StoreError> {
        for entry in entries {
            entry.check().map_err(|e| {
                let message = format!("task {:?} cannot be stored: {e}", entry.task_id());
                StoreError::new(StoreErrorKind::Invalid, "write", message)
            })?;
        }
        self.transaction("write", |connection| write::write(connection, entries))
    }

    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.read("get", |connection| query::get(connection, id))
    }

    fn query(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        let invalid = |message| StoreError::new(StoreErrorKind::Invalid, "query", message);
        if query.limit == 0 {
            return Err(invalid("a page of 0 tasks was asked for; ask for at least 1".to_owned()));
        }
        let before = match &query.after {
            None => i64::MAX,
            Some(cursor) => query::place(cursor).ok_or_else(|| {
                let text = cursor.0.chars().take(60).collect::<String>();
                invalid(format!("{text:?} is no cursor of this store; take one from a page"))
            })?,
        };
        self.read("query", |connection| {
            consistently(connection, |connection| query::page(connection, query, before))
        })
    }

    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError> {
        self.read("count", |connection| query::count(connection, filter))
    }

    fn history(
        &self,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>, StoreError> {
        self.read("history", |connection| query::history(connection, id, after, limit))
    }

    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError> {
        self.transaction("submit_command", |connection| commands::submit(connection, command))?;
        self.doorbells.ring(&command.holder);
        Ok(())
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError> {
        let any = |connection: &Connection| commands::is_any_claimable(connection, holder, now);
        if !self.read("claim_commands", any)? {
            return Ok(Vec::new());
        }
        self.transaction("claim_commands", |connection| {
            commands::claim(connection, holder, limit, lease, now)
        })
    }

    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.transaction("complete_command", |connection| {
            commands::complete(connection, id, receipt, now)
        })
    }

    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError> {
        self.transaction("release_command", |connection| commands::release(connection, id))
    }

    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError> {
        self.read("commands", |connection| commands::of_task(connection, task))
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError> {
        self.transaction("beat", |connection| nodes::beat(connection, node, ttl, now))
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError> {
        self.transaction("retire", |connection| nodes::retire(connection, incarnation, now))
    }

    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError> {
        self.read("nodes", |connection| nodes::list(connection, now))
    }

    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError> {
        match self.read("pin", |connection| nodes::pinned(connection, fact))? {
            Some(value) => Ok(value), // a fact never changes: no need for the write lock
            None => self.transaction("pin", |connection| nodes::pin(connection, fact, value)),
        }
    }

    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError> {
        self.read("pinned", |connection| nodes::pinned(connection, fact))
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError> {
        let ended = self.read("prune", |connection| prune::ended(connection, request))?;
        if request.dry_run {
            let nodes =
                |connection: &Connection| prune::count_nodes(connection, request.before, now);
            return Ok(Pruned { tasks: ended.len(), nodes: self.read("prune", nodes)? });
        }
        let mut pruned = Pruned::default();
        for chunk in ended.chunks(prune::CHUNK) {
            pruned.tasks +=
                self.transaction("prune", |connection| prune::delete(connection, chunk))?;
        }
        pruned.nodes = self.transaction("prune", |connection| {
            prune::delete_nodes(connection, request.before, now)
        })?;
        Ok(pruned)
    }

    fn close(&self) -> Result<(), StoreError> {
        self.doorbells.silence();
        // The writer first: whoever holds it finishes, and nobody gets it after the mark is set.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = std::mem::replace(&mut *self.connections(), Connections::Closed);
        drop(connections); // before the writer, which then is the last and moves the log into the file
        let Some(Writer { connection, .. }) = writer.take() else { return Ok(()) };
        connection.close().map_err(|(_, error)| self.subject.error("close", error))
    }

    fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        if matches!(*self.connections(), Connections::Open { .. }) {
            self.doorbells.subscribe(holder, bell);
        }
    }
}
