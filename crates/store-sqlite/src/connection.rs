//! Opening connections, and waiting for other processes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::is_busy;
use crate::options::Options;

/// Prepared statements kept per connection: all the fixed ones, and many forms of queries.
const STATEMENTS: usize = 128;

/// Pages in the log before a commit moves them into the file; rarer than usual, so that pages which many
/// batches change are moved once.
const CHECKPOINT_PAGES: u32 = 4000;

/// The log is cut back to this after a burst.
const LOG_BYTES: u32 = 64 << 20;

/// The writer's cache, in KiB: inner pages of the indexes of millions of tasks.
const WRITER_CACHE_KIB: i32 = 32 << 10;

/// Longest pause between two attempts to get a lock: short, because locks here are held for milliseconds. But where
/// many wait, shorter pauses keep a busy machine from the very work that the lock's holder waits for: the kernel's
/// own workers, which write to the disk, were seen not to run for seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Where a database lies.
#[derive(Clone, Debug)]
pub(crate) enum Place<'a> {
    /// In memory: one connection is all there is.
    Memory,
    /// In a file that may be created.
    Create(&'a Path),
    /// In a file that exists.
    Existing(&'a Path),
    /// In a file that nobody can write, beside which no log can be put.
    Immutable(&'a Path),
}

/// Opens a connection that never waits by itself: [`patiently`] does, for all calls alike.
pub(crate) fn connect(place: &Place<'_>) -> rusqlite::Result<Connection> {
    let usual = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match place {
        Place::Memory => Connection::open_in_memory()?,
        Place::Create(path) => {
            Connection::open_with_flags(path, usual | OpenFlags::SQLITE_OPEN_CREATE)?
        }
        Place::Existing(path) => Connection::open_with_flags(path, usual)?,
        Place::Immutable(path) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags)?
        }
    };
    connection.busy_timeout(Duration::ZERO)?;
    // Or SQLite looks at parameters to see whether a partial index fits, and parses the statement anew each
    // time that they change: ten times what it costs to read a task.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Has SQLite open what a reader needs.
pub(crate) fn begin_to_read(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA schema_version", [], |row| row.get(0))
}

/// Settings of the connection that writes.
pub(crate) fn prepare_writer(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    let synchronous = options.synchronous.as_str();
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -{WRITER_CACHE_KIB};
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
         PRAGMA journal_size_limit = {LOG_BYTES};
         PRAGMA temp_store = MEMORY;"
    ))
}

fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Does `work` again as long as another connection is in the way, up to `limit`.
pub(crate) fn patiently<T>(
    limit: Duration,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        match work() {
            Err(error) if is_busy(&error) && start.elapsed() < limit => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

/// Does `work` in a transaction that holds the write lock from its start, and commits it.
///
/// The lock is the only thing that is waited for: `work` runs once, unless the commit of a file that is not
/// in WAL mode yet meets a reader.
pub(crate) fn immediately<T>(
    connection: &mut Connection,
    limit: Duration,
    mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let connection = &*connection;
    patiently(limit, || {
        connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
        let transaction = Open(connection);
        let done = work(connection)?;
        connection.prepare_cached("COMMIT")?.raw_execute()?;
        drop(transaction);
        Ok(done)
    })
}

/// A transaction that is rolled back where it was not committed, also by a panic.
struct Open<'c>(&'c Connection);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // The error that led here is the one to report.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Does `work` on one state of the database, however often it asks.
pub(crate) fn consistently<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("BEGIN")?.raw_execute()?;
    let transaction = Open(connection);
    let done = work(connection)?;
    connection.prepare_cached("COMMIT")?.raw_execute()?;
    drop(transaction);
    Ok(done)
}
