//! The raw limit: the same rows in a bare loop of prepared statements, without any of the store's code.

use std::path::Path;
use std::time::Instant;

use chongming_core::TaskId;
use chongming_core::store::TaskStore;
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::{Connection, Statement, params};

use crate::{Anything, BATCH, TASKS};

/// How a loop writes a task. Two commits for each batch of tasks in any case.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A task row, then one update and one audit row for each of four changes of status.
    EachStep,
    /// What a journal under load writes: each batch's last state, with all audit rows.
    Coalesced,
}

/// A change of status: version, from, to, trigger.
type Step = (i64, i64, i64, i64);

const QUEUED: Step = (1, 0, 2, 0);
const STARTING: Step = (2, 2, 4, 18);
const RUNNING: Step = (3, 4, 5, 19);
const ENDED: Step = (4, 5, 9, 21);

const AT: i64 = 1_800_000_000_000_000;
const OWNER: &str = "machine-17:4242";
const HOLDER: &str = "019a0b1c2d3e4f5061728394a5b6c7d8";
const NONE: Option<&str> = None;

/// Tasks per second.
pub(crate) fn rate(path: &Path, synchronous: Synchronous, shape: Shape) -> Result<f64, Anything> {
    SqliteStore::open(path, Options { synchronous, ..Options::default() })?.close()?; // for its tables
    let connection = Connection::open(path)?;
    let synchronous = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 4000;"
    ))?;
    let ids: Vec<String> = (0..TASKS).map(|_| TaskId::generate().to_string()).collect();
    let mut rows = Rows::new(&connection)?;
    let (mut begin, mut commit) =
        (connection.prepare("BEGIN IMMEDIATE")?, connection.prepare("COMMIT")?);
    let start = Instant::now();
    for chunk in ids.chunks(BATCH) {
        begin.raw_execute()?;
        for id in chunk {
            match shape {
                Shape::EachStep => {
                    rows.create(&connection, id, &[QUEUED])?;
                    rows.save(id, &[STARTING])?;
                }
                Shape::Coalesced => rows.create(&connection, id, &[QUEUED, STARTING])?,
            }
        }
        commit.raw_execute()?;
        begin.raw_execute()?;
        for id in chunk {
            match shape {
                Shape::EachStep => {
                    rows.save(id, &[RUNNING])?;
                    rows.save(id, &[ENDED])?;
                }
                Shape::Coalesced => rows.save(id, &[RUNNING, ENDED])?,
            }
        }
        commit.raw_execute()?;
    }
    Ok(TASKS as f64 / start.elapsed().as_secs_f64())
}

struct Rows<'c> {
    insert: Statement<'c>,
    find: Statement<'c>,
    update: Statement<'c>,
    append: Statement<'c>,
}

impl<'c> Rows<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            insert: connection.prepare(
                "INSERT INTO tasks (id, status, status_version, bucket, name, owner, supervisor, created_at, \
                 updated_at, queued_at, started_at, attempt_started_at, ended_at, attempt, max_attempts, \
                 priority, label, bucket_key, tags, value, failure_kind, failure_message, failure_retryable) \
                 VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING",
            )?,
            find: connection.prepare("SELECT seq, status_version FROM tasks WHERE id = ?")?,
            update: connection.prepare(
                "UPDATE tasks SET status=?2, status_version=?3, owner=?4, supervisor=?5, updated_at=?6, \
                 queued_at=?7, started_at=?8, attempt_started_at=?9, ended_at=?10, attempt=?11, \
                 max_attempts=?12, priority=?13, label=?14, tags=?15, value=?16, failure_kind=?17, \
                 failure_message=?18, failure_retryable=?19 WHERE seq=?1",
            )?,
            append: connection
                .prepare("INSERT OR IGNORE INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?)")?,
        })
    }

    fn create(
        &mut self,
        connection: &Connection,
        id: &str,
        steps: &[Step],
    ) -> Result<(), Anything> {
        let (version, status) = last(steps);
        let made = self.insert.execute(params![
            id, status, version, NONE, "noop", OWNER, HOLDER, AT, AT, AT, NONE, AT, NONE, 1, 1, 0,
            NONE, NONE, NONE, NONE, NONE, NONE, NONE
        ])?;
        if made != 1 {
            return Err("the raw loop could not make a row".into());
        }
        self.append(connection.last_insert_rowid(), steps)
    }

    fn save(&mut self, id: &str, steps: &[Step]) -> Result<(), Anything> {
        let (version, status) = last(steps);
        let (seq, stored): (i64, i64) =
            self.find.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let changed = self.update.execute(params![
            seq, status, version, OWNER, HOLDER, AT, AT, AT, AT, AT, 1, 1, 0, NONE, NONE, NONE,
            NONE, NONE, NONE
        ])?;
        if (stored, changed) != (version - steps.len() as i64, 1) {
            return Err("the raw loop could not change a row".into());
        }
        self.append(seq, steps)
    }

    fn append(&mut self, seq: i64, steps: &[Step]) -> Result<(), Anything> {
        for (version, from, to, trigger) in steps {
            self.append.execute(params![seq, version, from, to, AT, trigger, NONE])?;
        }
        Ok(())
    }
}

fn last(steps: &[Step]) -> (i64, i64) {
    steps.last().map_or((0, 0), |(version, _, to, _)| (*version, *to))
}
