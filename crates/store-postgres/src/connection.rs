//! Connecting, prepared statements, transactions, and what the pool asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chongming_core::store::StoreErrorKind;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, Row, SimpleQueryMessage, Statement};
use r2d2::ManageConnection;

use crate::error::{Fault, Result, Subject};
use crate::options::Options;
use crate::row::unreadable;
use crate::statement::Shape;
use crate::tls::Connector;

/// Prepared statements kept per connection: all the fixed ones, and many forms of queries.
const STATEMENTS: usize = 256;

/// A connection that nobody used for so long is asked whether it still works, before it is trusted.
const TRUSTED: Duration = Duration::from_millis(500);

/// In the statements, stands before the name of each table of ours.
const QUALIFIER: char = '~';

pub(crate) type Parameters<'a> = [&'a (dyn ToSql + Sync)];

/// A setting that a connection is started with. No pooler hands it on: PgBouncer refuses it, or is told to
/// ignore what it does not know. So where it is missing, somebody stands between us and the server.
const MARK: &str = "chongming.direct";

/// Makes connections.
pub(crate) struct Manager {
    marked: Config,
    unmarked: Config,
    connector: Connector,
    subject: Subject,
    qualifier: Arc<str>,
    settings: String,
    /// Known once the mark was missing.
    is_pooled: AtomicBool,
    /// How often any connection was found broken: then none is trusted without a question.
    breaks: Arc<AtomicU64>,
    /// Why no connection could be had the last time.
    failure: LastFailure,
    /// Made before the pool was there.
    first: Mutex<Option<Link>>,
}

impl Manager {
    pub(crate) fn new(
        config: Config,
        connector: Connector,
        subject: Subject,
        options: &Options,
    ) -> Self {
        let limit = options.statement_timeout.as_millis();
        let mut marked = config.clone();
        marked.options(&format!("{} -c {MARK}=1", config.get_options().unwrap_or_default()));
        Self {
            marked,
            unmarked: config,
            connector,
            qualifier: format!("{}.", quoted(&subject.schema)).into(),
            subject,
            // Statements here count on reading what is committed, and are too short to be compiled. Where
            // others share the session it is left alone.
            settings: format!(
                "SELECT set_config('default_transaction_isolation', 'read committed', FALSE), \
                 set_config('jit', 'off', FALSE), set_config('statement_timeout', '{limit}', FALSE), \
                 set_config('idle_in_transaction_session_timeout', '{limit}', FALSE) \
                 WHERE current_setting('{MARK}', TRUE) = '1'"
            ),
            is_pooled: AtomicBool::new(false),
            breaks: Arc::default(),
            failure: LastFailure::default(),
            first: Mutex::default(),
        }
    }

    /// A connection to the server, made now.
    pub(crate) fn open(&self) -> Result<Link> {
        if !self.is_pooled.load(Ordering::Relaxed) {
            match self.marked.connect(self.connector.clone()).map_err(Fault::Driver) {
                Ok(mut client) => {
                    let answer = client.simple_query(&self.settings)?;
                    let is_row =
                        |part: &SimpleQueryMessage| matches!(part, SimpleQueryMessage::Row(_));
                    let is_pooled = !answer.iter().any(is_row);
                    self.is_pooled.store(is_pooled, Ordering::Relaxed);
                    return Ok(self.link(client, is_pooled));
                }
                Err(fault) if fault.is_refused_parameter() => {
                    self.is_pooled.store(true, Ordering::Relaxed);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(self.link(self.unmarked.connect(self.connector.clone())?, true))
    }

    fn link(&self, client: Client, is_pooled: bool) -> Link {
        Link {
            client,
            qualifier: Arc::clone(&self.qualifier),
            is_pooled,
            statements: HashMap::new(),
            batches: HashMap::new(),
            types: HashMap::new(),
            in_transaction: false,
            is_spoiled: false,
            breaks: Arc::clone(&self.breaks),
            breaks_seen: self.breaks.load(Ordering::Relaxed),
            last_used: Instant::now(),
        }
    }

    /// For the next who asks.
    pub(crate) fn keep(&self, link: Link) {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }

    /// Where it will be said why there is no connection.
    pub(crate) fn last_failure(&self) -> LastFailure {
        self.failure.clone()
    }
}

impl ManageConnection for Manager {
    type Connection = Link;
    type Error = Failed;

    fn connect(&self) -> std::result::Result<Link, Failed> {
        if let Some(link) = self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(link);
        }
        let opened = self.open();
        self.failure.set(opened.as_ref().err().map(|fault| self.subject.told(fault)));
        opened.map_err(Failed)
    }

    fn is_valid(&self, link: &mut Link) -> std::result::Result<(), Failed> {
        let breaks = self.breaks.load(Ordering::Relaxed);
        if link.breaks_seen == breaks && link.last_used.elapsed() < TRUSTED {
            return Ok(());
        }
        link.done(|client| client.simple_query("").map(drop)).map_err(Failed)?;
        link.breaks_seen = breaks;
        Ok(())
    }

    fn has_broken(&self, link: &mut Link) -> bool {
        link.in_transaction || link.is_spoiled || link.client.is_closed()
    }
}

/// Why no connection could be had the last time; the pool itself keeps only text.
#[derive(Clone, Default)]
pub(crate) struct LastFailure(Arc<Mutex<Option<(StoreErrorKind, String)>>>);

impl LastFailure {
    fn set(&self, failure: Option<(StoreErrorKind, String)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub(crate) fn get(&self) -> Option<(StoreErrorKind, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why the pool did not get a connection; told through [`LastFailure`].
#[derive(Debug)]
pub(crate) struct Failed(Fault);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Fault::Driver(error) => error.fmt(f),
            Fault::Unreadable(error) | Fault::Unfit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// One connection with its prepared statements.
pub(crate) struct Link {
    client: Client,
    qualifier: Arc<str>,
    /// A pooler may give each transaction another session: nothing may count on the one before.
    is_pooled: bool,
    statements: HashMap<Box<str>, Statement>,
    /// Those of batches, whose text is long.
    batches: HashMap<Shape, Statement>,
    /// Behind a pooler, instead of prepared statements: what their parameters are.
    types: HashMap<Box<str>, Arc<[Type]>>,
    /// Open, or failed: nobody else may meet it.
    in_transaction: bool,
    /// Something else is wrong with it.
    is_spoiled: bool,
    breaks: Arc<AtomicU64>,
    breaks_seen: u64,
    last_used: Instant,
}

impl Link {
    fn done<T>(
        &mut self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error>,
    ) -> Result<T> {
        self.last_used = Instant::now();
        work(&mut self.client).map_err(|error| {
            if self.client.is_closed() {
                self.breaks.fetch_add(1, Ordering::Relaxed);
            }
            let fault = Fault::Driver(error);
            // A new connection is cheap, and clean.
            self.is_spoiled |= fault.is_lasting();
            fault
        })
    }

    /// Is there nobody at the other end any more?
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Is there a pooler at the other end?
    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    fn qualified(&self, sql: &str) -> String {
        sql.replace(QUALIFIER, &self.qualifier)
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        let qualified = self.qualified(sql);
        let statement = self.done(|client| client.prepare(&qualified))?;
        self.statements.insert(sql.into(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&mut self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>> {
        if self.is_pooled {
            return self.query_without_name(sql, parameters);
        }
        let statement = self.prepared(sql)?;
        self.done(|client| client.query(&statement, parameters))
    }

    /// A named statement would be looked for in a session that does not have it, or has another of that name.
    /// One without a name is sent with everything that it needs.
    fn query_without_name(&mut self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>> {
        let types = match self.types.get(sql) {
            Some(types) => Arc::clone(types),
            None => {
                let types = self.learned(sql)?;
                if self.types.len() >= STATEMENTS {
                    self.types.clear();
                }
                self.types.insert(sql.into(), Arc::clone(&types));
                types
            }
        };
        let typed: Vec<_> = parameters.iter().copied().zip(types.iter().cloned()).collect();
        let qualified = self.qualified(sql);
        self.done(|client| client.query_typed(&qualified, &typed))
    }

    /// Asks the server for the types of a statement's parameters, within one transaction and so in one
    /// session: before its end the statement is given up, so that its name is free again.
    fn learned(&mut self, sql: &str) -> Result<Arc<[Type]>> {
        if !self.in_transaction {
            return self.transaction(|link| link.learned(sql));
        }
        let qualified = self.qualified(sql);
        Ok(self.done(|client| client.prepare(&qualified))?.params().into())
    }

    pub(crate) fn query_one(&mut self, sql: &str, parameters: &Parameters<'_>) -> Result<Row> {
        self.query_opt(sql, parameters)?.ok_or_else(|| unreadable("a statement gave no row"))
    }

    pub(crate) fn query_opt(
        &mut self,
        sql: &str,
        parameters: &Parameters<'_>,
    ) -> Result<Option<Row>> {
        Ok(self.query(sql, parameters)?.into_iter().next())
    }

    /// The answer of the statement that writes a batch.
    pub(crate) fn write(&mut self, shape: Shape, parameters: &Parameters<'_>) -> Result<Row> {
        if self.is_pooled {
            return self.query_one(&shape.sql(), parameters);
        }
        let statement = match self.batches.get(&shape) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.prepared(&shape.sql())?;
                self.batches.insert(shape, statement.clone());
                statement
            }
        };
        self.done(|client| client.query_one(&statement, parameters))
    }

    /// Several statements without parameters, as they are.
    pub(crate) fn batch(&mut self, sql: &str) -> Result<()> {
        self.done(|client| client.batch_execute(sql))
    }

    /// The same, with names of our tables in them.
    pub(crate) fn script(&mut self, sql: &str) -> Result<()> {
        let qualified = self.qualified(sql);
        self.batch(&qualified)
    }

    /// Does `work` in a transaction and commits it. Where that fails, also by a panic, the connection is
    /// given up, and the server rolls back.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.in_transaction = true;
        self.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        let done = work(self)?;
        self.batch("COMMIT")?;
        self.in_transaction = false;
        Ok(done)
    }
}

/// A name as SQL takes it whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
