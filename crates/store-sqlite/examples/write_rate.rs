//! How fast the store writes, against a bare loop of the same prepared statements on the same tables.
//!
//! `cargo run --release -p chongming-store-sqlite --example write_rate [FOLDER] [full|normal]`
//!
//! One task = one row, four changes of status in two commits, four audit rows; batches of 1024 tasks.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    IncarnationId, Status, TaskId, TaskSnapshot, Timestamp, Trigger, Value, machine,
};
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::{Connection, params};

const TASKS: usize = 100_000;
const BATCH: usize = 1024;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().map_or_else(std::env::temp_dir, Into::into);
    let synchronous = match arguments.get(1).map(String::as_str) {
        Some("normal") => Synchronous::Normal,
        _ => Synchronous::Full,
    };
    let options = Options { synchronous, ..Options::default() };
    for _ in 0..ROUNDS {
        let raw = measure(&folder, |path| raw(path, options))?;
        let store = measure(&folder, |path| through_the_store(path, options))?;
        println!("raw {raw:7.0} t/s   store {store:7.0} t/s   ratio {:.2}", store / raw);
    }
    Ok(())
}

type Elapsed = Result<f64, Box<dyn Error>>;

fn measure(folder: &Path, run: impl Fn(&Path) -> Elapsed) -> Elapsed {
    let folder = tempfile::tempdir_in(folder)?;
    Ok(TASKS as f64 / run(&folder.path().join("rate.db"))?)
}

fn created(number: usize) -> Result<Entry, Box<dyn Error>> {
    let at = Timestamp::from_micros(1_800_000_000_000_000 + number as i64);
    let mut task = TaskSnapshot::pending(TaskId::generate(), "rate", "machine-17:4242".into(), at);
    task.supervisor = Some(IncarnationId::new("019a0b1c2d3e4f5061728394a5b6c7d8")?);
    let transitions = vec![
        machine::apply(&mut task, Status::Queued, Trigger::DependenciesResolved, at, None)?,
        machine::apply(&mut task, Status::Starting, Trigger::Dispatch, at, None)?,
    ];
    Ok(Entry::Create { snapshot: task.into(), transitions })
}

fn ended(created: &Entry) -> Result<Entry, Box<dyn Error>> {
    let Entry::Create { snapshot, .. } = created else { return Err("not a create".into()) };
    let (mut task, at) = ((**snapshot).clone(), snapshot.created_at);
    let transitions = vec![
        machine::apply(&mut task, Status::Running, Trigger::Launched, at, None)?,
        machine::apply(&mut task, Status::Succeeded, Trigger::Completed, at, None)?,
    ];
    task.value = Some(Box::new(Value::Null));
    let expect_version = snapshot.status_version();
    Ok(Entry::Save { snapshot: task.into(), expect_version, transitions, if_expired: None })
}

/// Each batch of creates, followed by the same tasks' ends.
fn batches() -> Result<Vec<Vec<Entry>>, Box<dyn Error>> {
    let creates = (0..TASKS).map(created).collect::<Result<Vec<_>, _>>()?;
    let mut batches = Vec::new();
    for chunk in creates.chunks(BATCH) {
        batches.push(chunk.to_vec());
        batches.push(chunk.iter().map(ended).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(batches)
}

fn through_the_store(path: &Path, options: Options) -> Elapsed {
    let (store, batches) = (SqliteStore::open(path, options)?, batches()?);
    let start = Instant::now();
    for batch in &batches {
        if store.write(batch)?.iter().any(Result::is_err) {
            return Err("an entry was refused".into());
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

/// The same rows without any of the store's code.
fn raw(path: &Path, options: Options) -> Elapsed {
    SqliteStore::open(path, options)?.close()?; // for its tables
    let connection = Connection::open(path)?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 4000;"
    ))?;
    let ids: Vec<String> = (0..TASKS).map(|_| TaskId::generate().to_string()).collect();
    let (owner, holder) = ("machine-17:4242", "019a0b1c2d3e4f5061728394a5b6c7d8");
    let (at, none) = (1_800_000_000_000_000_i64, None::<String>);
    let mut insert = connection.prepare(
        "INSERT INTO tasks (id, status, status_version, bucket, name, owner, supervisor, created_at, \
         updated_at, queued_at, started_at, attempt_started_at, ended_at, attempt, max_attempts, priority, \
         label, bucket_key, tags, value, failure_kind, failure_message, failure_retryable) VALUES \
         (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING",
    )?;
    let mut find = connection.prepare("SELECT seq, status_version FROM tasks WHERE id = ?")?;
    let mut update = connection.prepare(
        "UPDATE tasks SET status=?2, status_version=?3, owner=?4, supervisor=?5, updated_at=?6, \
         queued_at=?7, started_at=?8, attempt_started_at=?9, ended_at=?10, attempt=?11, max_attempts=?12, \
         priority=?13, label=?14, tags=?15, value=?16, failure_kind=?17, failure_message=?18, \
         failure_retryable=?19 WHERE seq=?1",
    )?;
    let mut append =
        connection.prepare("INSERT OR IGNORE INTO transitions VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    let (mut begin, mut commit) =
        (connection.prepare("BEGIN IMMEDIATE")?, connection.prepare("COMMIT")?);
    let start = Instant::now();
    for chunk in ids.chunks(BATCH) {
        begin.raw_execute()?;
        for id in chunk {
            let made = insert.execute(params![
                id, 4, 2, none, "rate", owner, holder, at, at, at, none, at, none, 1, 1, 0, none,
                none, none, none, none, none, none
            ])?;
            if made != 1 {
                return Err("not made".into());
            }
            let seq = connection.last_insert_rowid();
            append.execute(params![seq, 1, 0, 2, at, 0, none])?;
            append.execute(params![seq, 2, 2, 4, at, 18, none])?;
        }
        commit.raw_execute()?;
        begin.raw_execute()?;
        for id in chunk {
            let (seq, version): (i64, i64) =
                find.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let changed = update.execute(params![
                seq, 9, 4, owner, holder, at, at, at, at, at, 1, 1, 0, none, none, "null", none,
                none, none
            ])?;
            if (version, changed) != (2, 1) {
                return Err("not changed".into());
            }
            append.execute(params![seq, 3, 4, 5, at, 19, none])?;
            append.execute(params![seq, 4, 5, 9, at, 21, none])?;
        }
        commit.raw_execute()?;
    }
    Ok(start.elapsed().as_secs_f64())
}
