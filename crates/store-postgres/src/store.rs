//! The store: the pool, and the trait's calls on its connections.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use chongming_core::store::{
    Beat, Command, Count, Doorbell, Entry, EntryError, NewCommand, Node, NodeRow, Now,
    PruneRequest, Pruned, Receipt, StoreError, StoreErrorKind, TaskFilter, TaskPage, TaskQuery,
    TaskStore,
};
use chongming_core::{CommandId, IncarnationId, TaskId, TaskSnapshot, Transition};
use r2d2::{NopErrorHandler, Pool, PooledConnection};

use crate::connection::{LastFailure, Link, Manager};
use crate::doorbell::Doorbells;
use crate::dsn::Dsn;
use crate::error::{Fault, Subject};
use crate::options::Options;
use crate::statement::Trust;
use crate::tls::Connector;
use crate::{commands, nodes, prune, query, schema, write};

type Stored<T> = Result<T, StoreError>;

/// How often a batch is tried that other transactions get in the way of.
const COLLISIONS: u32 = 8;
/// Between two tries of the pool to reach the server: a holder whose server is back has a lease to renew.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Keeps tasks on a Postgres server.
///
/// Any number of programs on any number of machines may use one schema. Calls share a pool of connections,
/// which heals by itself when the server was restarted; a call that meets a server that is gone, or does not
/// answer in time, is `Unavailable`.
///
/// Calls block. A thread that drives an async runtime must hand them to another thread (`spawn_blocking`
/// with tokio), or the driver panics.
pub struct PostgresStore {
    subject: Subject,
    connect_timeout: Duration,
    /// `None` once closed.
    pool: RwLock<Option<Pool<Manager>>>,
    failure: LastFailure,
    /// None behind a pooler, which does not pass calls through.
    doorbells: Option<Doorbells>,
}

impl PostgresStore {
    /// Connects to `postgresql://user:password@host:port/dbname?parameter=value`; makes schema and tables
    /// where there are none.
    ///
    /// The parameters are those of libpq (`sslmode`, `sslrootcert`, `connect_timeout`, …), and `schema`.
    ///
    /// # Errors
    /// The string is not understood, the server cannot be reached or refuses the user, the schema belongs
    /// to somebody else or to a newer version, or there are no tables and the role may not make them, or there
    /// are and it may not write to them.
    pub fn connect(dsn: &str, options: Options) -> Result<Self, StoreError> {
        Self::open(dsn, &options, schema::ensure)
    }

    /// Connects to a database that has the tables: for those who only look or ask. Needs no right to write.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and where there are no tables.
    pub fn connect_existing(dsn: &str, options: Options) -> Result<Self, StoreError> {
        Self::open(dsn, &options, schema::check)
    }

    fn open(
        dsn: &str,
        options: &Options,
        prepare: impl FnOnce(&mut Link, &Subject) -> Stored<()>,
    ) -> Stored<Self> {
        let invalid = |message| {
            StoreError::new(StoreErrorKind::Invalid, "open", format!("Postgres: {message}"))
        };
        let dsn = Dsn::parse(dsn, options).map_err(invalid)?;
        let Dsn { config, name, tls, schema, connect_timeout } = dsn;
        let silence = options.statement_timeout + connect_timeout;
        let connector = Connector::new(&tls, silence).map_err(invalid)?;
        let subject = Subject { name, schema };
        let manager = Manager::new(config.clone(), connector.clone(), subject.clone(), options);
        // Not by the pool, which waits in the hope of better times and then has no reason to give.
        let mut link = manager.open().map_err(|fault| subject.error("open", fault))?;
        prepare(&mut link, &subject)?;
        let is_pooled = link.is_pooled();
        let doorbells =
            (!is_pooled).then(|| Doorbells::new(config, connector, subject.schema.clone()));
        manager.keep(link);
        let failure = manager.last_failure();
        let pool = Pool::builder()
            .max_size(options.connections.max(1))
            .min_idle(Some(0))
            // How long a call waits is said there; this only bounds the pauses, to half of it.
            .connection_timeout(2 * LONGEST_PAUSE)
            .error_handler(Box::new(NopErrorHandler))
            .build_unchecked(manager);
        let pool = RwLock::new(Some(pool));
        Ok(Self { subject, connect_timeout, pool, failure, doorbells })
    }

    fn link(&self, operation: &'static str) -> Stored<PooledConnection<Manager>> {
        let pool = self.pool.read().unwrap_or_else(PoisonError::into_inner).clone();
        let pool = pool.ok_or_else(|| StoreError::closed(operation))?;
        pool.get_timeout(self.connect_timeout).map_err(|_| match self.failure.get() {
            Some((kind, message)) => StoreError::new(kind, operation, message),
            None => {
                let limit = self.connect_timeout;
                let what = format!("gave no connection within {limit:?}; try again later");
                self.subject.refuse(StoreErrorKind::Unavailable, operation, what)
            }
        })
    }

    /// Does `work` on a connection.
    fn call<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Link) -> Result<T, Fault>,
    ) -> Stored<T> {
        let mut link = self.link(operation)?;
        work(&mut link).map_err(|fault| self.subject.error(operation, fault))
    }

    /// Does `work`, which may be done twice without harm: once more where the connection was lost, so that
    /// a restart of the server goes unnoticed.
    fn again<T>(
        &self,
        operation: &'static str,
        mut work: impl FnMut(&mut Link) -> Result<T, Fault>,
    ) -> Stored<T> {
        let mut link = self.link(operation)?;
        let done = work(&mut link);
        if done.is_ok() || !link.is_closed() {
            return done.map_err(|fault| self.subject.error(operation, fault));
        }
        drop(link);
        self.call(operation, work)
    }
}

impl TaskStore for PostgresStore {
    fn write(&self, entries: &[Entry]) -> Result<Vec<Result<(), EntryError>>, StoreError> {
        for entry in entries {
            entry.check().map_err(|e| {
                let message = format!("task {:?} cannot be stored: {e}", entry.task_id());
                StoreError::new(StoreErrorKind::Invalid, "write", message)
            })?;
        }
        let (mut trust, mut tried) = (Trust::AllNew, 1);
        loop {
            let mut link = self.link("write")?;
            match write::write(&mut link, entries, trust) {
                // In both cases the server has undone all of it.
                Err(fault) if fault.is_taken() && trust == Trust::AllNew => trust = Trust::Nothing,
                Err(fault) if fault.is_collision() && tried < COLLISIONS => tried += 1,
                done => return done.map_err(|fault| self.subject.error("write", fault)),
            }
        }
    }

    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.again("get", |link| query::get_task(link, id))
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
        self.again("query", |link| query::page(link, query, before))
    }

    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError> {
        self.again("count", |link| query::count(link, filter))
    }

    fn history(
        &self,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>, StoreError> {
        self.again("history", |link| query::history(link, id, after, limit))
    }

    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError> {
        let channel = &self.subject.schema;
        self.again("submit_command", |link| commands::submit(link, command, channel))
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError> {
        self.call("claim_commands", |link| commands::claim(link, holder, limit, lease, now))
    }

    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.call("complete_command", |link| commands::complete(link, id, receipt, now))
    }

    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError> {
        self.again("release_command", |link| commands::release(link, id))
    }

    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError> {
        self.again("commands", |link| commands::of_task(link, task))
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError> {
        self.call("beat", |link| nodes::beat(link, node, ttl, now))
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError> {
        self.again("retire", |link| nodes::retire(link, incarnation, now))
    }

    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError> {
        self.again("nodes", |link| nodes::list(link, now))
    }

    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError> {
        self.again("pin", |link| nodes::pin(link, fact, value))
    }

    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError> {
        self.again("pinned", |link| nodes::pinned(link, fact))
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError> {
        let PruneRequest { before, limit: _, dry_run } = *request;
        let ended = self.again("prune", |link| prune::ended(link, request))?;
        if dry_run {
            let nodes = self.again("prune", |link| prune::count_nodes(link, before, now))?;
            return Ok(Pruned { tasks: ended.len(), nodes });
        }
        let mut pruned = Pruned::default();
        for chunk in ended.chunks(prune::CHUNK) {
            pruned.tasks += self.call("prune", |link| prune::delete(link, chunk))?;
        }
        pruned.nodes = self.call("prune", |link| prune::delete_nodes(link, before, now))?;
        Ok(pruned)
    }

    fn close(&self) -> Result<(), StoreError> {
        let pool = self.pool.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(doorbells) = &self.doorbells else { return Ok(()) };
        doorbells.silence();
        if let Some(pool) = pool
            && doorbells.is_listening()
            && let Some(mut link) = pool.try_get()
        {
            // Wakes the listener, so that its connection ends now; without, it ends later.
            let _ = link.query("SELECT pg_notify($1, '')", &[&self.subject.schema]);
        }
        Ok(())
    }

    fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        let is_open = self.pool.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if let Some(doorbells) = &self.doorbells
            && is_open
        {
            doorbells.subscribe(holder, bell);
        }
    }
}

#[cfg(test)]
mod plans;
