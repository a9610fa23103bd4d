//! Tables, indexes and their versions.
//!
//! The file is created in rollback-journal mode and switched to WAL afterwards, so that its first page says
//! whose it is from the first byte on. See `file` for who reads that.

use chongming_core::store::{StoreError, StoreErrorKind};
use chongming_core::{Status, Trigger};
use rusqlite::Connection;

use crate::codes;
use crate::connection::{immediately, patiently};
use crate::error::Subject;

/// "CHMT": marks a database as ours.
pub(crate) const APPLICATION_ID: u32 = 0x4348_4D54;

/// The schema that this program writes; the number of migrations.
pub(crate) const VERSION: u32 = 2;

/// Each turns the schema before it into the next; the first makes it from nothing.
const MIGRATIONS: [fn() -> String; VERSION as usize] = [first, second];

/// 8 KiB pages: a batch dirties fewer of them than of the usual 4 KiB.
const PAGE_SIZE: u32 = 8192;

/// Indexes are few because each costs write rate. `tasks_by_status` serves unfinished pages, states and
/// their buckets without looking at rows; `succeeded` is left out because entries would only pile up there.
fn first() -> String {
    let succeeded = codes::SUCCEEDED;
    let mut sql = format!(
        "CREATE TABLE tasks (
             seq INTEGER PRIMARY KEY,
             id TEXT NOT NULL UNIQUE,
             status INTEGER NOT NULL,
             status_version INTEGER NOT NULL,
             bucket INTEGER,
             name TEXT NOT NULL,
             owner TEXT NOT NULL,
             supervisor TEXT,
             created_at INTEGER NOT NULL,
             updated_at INTEGER NOT NULL,
             queued_at INTEGER,
             started_at INTEGER,
             attempt_started_at INTEGER,
             ended_at INTEGER,
             attempt INTEGER NOT NULL,
             max_attempts INTEGER NOT NULL,
             priority INTEGER NOT NULL,
             label TEXT,
             bucket_key TEXT,
             tags TEXT,
             value TEXT,
             failure_kind TEXT,
             failure_message TEXT,
             failure_retryable INTEGER,
             last_heartbeat_at INTEGER,
             progress_done REAL,
             progress_total REAL,
             progress_unit TEXT,
             progress_message TEXT
         );
         CREATE INDEX tasks_by_status ON tasks (status, seq, bucket) WHERE status <> {succeeded};

         CREATE TABLE transitions (
             task_seq INTEGER NOT NULL,
             version INTEGER NOT NULL,
             from_status INTEGER NOT NULL,
             to_status INTEGER NOT NULL,
             at INTEGER NOT NULL,
             trigger INTEGER NOT NULL,
             reason TEXT,
             PRIMARY KEY (task_seq, version)
         ) WITHOUT ROWID;

         CREATE TABLE commands (
             seq INTEGER PRIMARY KEY,
             id TEXT NOT NULL UNIQUE,
             task_id TEXT NOT NULL,
             holder TEXT NOT NULL,
             kind TEXT NOT NULL,
             reason TEXT,
             issuer TEXT NOT NULL,
             issued_at INTEGER NOT NULL,
             claimed_until INTEGER,
             receipt TEXT,
             detail TEXT,
             completed_at INTEGER
         );
         CREATE INDEX commands_open ON commands (holder) WHERE receipt IS NULL;
         CREATE INDEX commands_by_task ON commands (task_id);

         CREATE TABLE nodes (
             incarnation TEXT PRIMARY KEY,
             owner TEXT NOT NULL,
             host TEXT NOT NULL,
             pid INTEGER NOT NULL,
             num_buckets INTEGER NOT NULL,
             owned_buckets TEXT,
             artifacts TEXT,
             started_at INTEGER NOT NULL,
             lease_until INTEGER NOT NULL
         ) WITHOUT ROWID;

         CREATE TABLE facts (fact TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

         CREATE TABLE status_words (code INTEGER PRIMARY KEY, word TEXT NOT NULL);
         CREATE TABLE trigger_words (code INTEGER PRIMARY KEY, word TEXT NOT NULL);
         CREATE VIEW task_list AS
             SELECT s.word AS state, t.* FROM tasks t JOIN status_words s ON s.code = t.status;
         CREATE VIEW trail AS
             SELECT k.id, t.version, f.word AS \"from\", s.word AS \"to\", t.at, g.word AS \"trigger\", t.reason
             FROM transitions t JOIN tasks k ON k.seq = t.task_seq
             JOIN status_words f ON f.code = t.from_status JOIN status_words s ON s.code = t.to_status
             JOIN trigger_words g ON g.code = t.trigger;"
    );
    for status in Status::ALL {
        let code = codes::status(status);
        sql.push_str(&format!("INSERT INTO status_words VALUES ({code}, '{status}');\n"));
    }
    for &trigger in Trigger::ALL {
        let code = codes::trigger(trigger);
        sql.push_str(&format!("INSERT INTO trigger_words VALUES ({code}, '{trigger}');\n"));
    }
    sql
}

/// An index of tags, kept by those who write tasks: triggers would cost a third of the write rate. Tasks
/// without tags are not in it.
fn second() -> String {
    "CREATE TABLE task_tags (
         tag TEXT NOT NULL,
         task_seq INTEGER NOT NULL,
         PRIMARY KEY (tag, task_seq)
     ) WITHOUT ROWID;
     INSERT INTO task_tags SELECT DISTINCT j.value, t.seq FROM tasks t, json_each(t.tags) j;"
        .to_owned()
}

/// What a database says about itself.
enum Found {
    /// Nothing is in it.
    Empty,
    /// A schema of ours.
    Version(u32),
    /// Somebody else's tables.
    Foreign,
}

fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, u32>(0));
    let version = number("PRAGMA user_version")?;
    match number("PRAGMA application_id")? {
        APPLICATION_ID if version > 0 => Ok(Found::Version(version)),
        APPLICATION_ID | 0 => {
            let tables = number("SELECT count(*) FROM sqlite_schema")?;
            Ok(if tables == 0 && version == 0 { Found::Empty } else { Found::Foreign })
        }
        _ => Ok(Found::Foreign),
    }
}

/// Refuses what this program must not touch; says whether the schema is to be made or raised.
fn judge(found: &Found, subject: &Subject) -> Result<bool, StoreError> {
    match found {
        Found::Empty => Ok(true),
        Found::Version(version) if *version <= VERSION => Ok(*version < VERSION),
        Found::Version(version) => Err(newer(subject, *version)),
        Found::Foreign => Err(foreign(subject)),
    }
}

/// Made by a program that knows more than this one.
pub(crate) fn newer(subject: &Subject, version: u32) -> StoreError {
    let what = format_args!(
        "was written by a newer version (schema {version}; this program knows {VERSION}); use that version"
    );
    subject.refuse(StoreErrorKind::Foreign, "open", what)
}

/// An SQLite database of another program.
pub(crate) fn foreign(subject: &Subject) -> StoreError {
    let what = "belongs to another program; nothing was changed, give another path";
    subject.refuse(StoreErrorKind::Foreign, "open", what)
}

/// Checks the schema of an existing database.
pub(crate) fn check(connection: &Connection, subject: &Subject) -> Result<(), StoreError> {
    let found = patiently(subject.lock_wait, || look(connection));
    let found = found.map_err(|e| subject.error("open", e))?;
    match (judge(&found, subject)?, found) {
        (_, Found::Empty) => {
            let what = "is empty; it becomes a database when the first task is run with it";
            Err(subject.refuse(StoreErrorKind::Foreign, "open", what))
        }
        (false, Found::Version(_) | Found::Foreign) => Ok(()),
        (true, Found::Version(_) | Found::Foreign) => {
            let what =
                "was written by an older version; run a task with it once to bring it up to date";
            Err(subject.refuse(StoreErrorKind::Foreign, "open", what))
        }
    }
}

/// Makes the tables where there are none, raises an older schema, and switches to WAL. Any number of
/// processes may do this at once.
pub(crate) fn ensure(connection: &mut Connection, subject: &Subject) -> Result<(), StoreError> {
    let wait = subject.lock_wait;
    let sql_error = |e| subject.error("open", e);
    let found = patiently(wait, || {
        connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        look(connection)
    });
    if judge(&found.map_err(sql_error)?, subject)? {
        let done = immediately(connection, wait, |connection| {
            let found = look(connection)?; // another process may have been quicker
            let from = match found {
                Found::Empty => 0,
                Found::Version(version) => version as usize,
                Found::Foreign => return Ok(found),
            };
            for migration in MIGRATIONS.iter().skip(from) {
                connection.execute_batch(&migration())?;
            }
            if from < MIGRATIONS.len() {
                connection.pragma_update(None, "application_id", APPLICATION_ID)?;
                connection.pragma_update(None, "user_version", VERSION)?;
            }
            Ok(found)
        });
        judge(&done.map_err(sql_error)?, subject)?;
    }
    let mode = patiently(wait, || {
        // SQLite's own waiting does not cover this switch.
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
    });
    match mode.map_err(sql_error)?.as_str() {
        "wal" | "memory" => Ok(()),
        other => {
            let what = format_args!(
                "cannot use a write-ahead log (its mode stays {other}); put it on a local disk"
            );
            Err(subject.refuse(StoreErrorKind::Unavailable, "open", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_index_of_tags_is_made_for_old_tasks() {
        let mut connection = Connection::open_in_memory().unwrap();
        let insert = "INSERT INTO tasks (id, status, status_version, name, owner, created_at, updated_at, \
            attempt, max_attempts, priority, tags) VALUES (?1, 2, 1, 'n', 'o', 1, 1, 0, 1, 0, ?2)";
        connection.execute_batch(&first()).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection.execute(insert, [Some("old"), Some(r#"["a","b","a"]"#)]).unwrap();
        connection.execute(insert, [Some("plain"), None]).unwrap();

        let subject = Subject { name: "x".into(), lock_wait: Duration::ZERO };
        ensure(&mut connection, &subject).unwrap();
        let mut statement = connection.prepare("SELECT tag, task_seq FROM task_tags").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(String, i64)> = rows.collect::<rusqlite::Result<_>>().unwrap();
        assert_eq!(rows, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    }
}
