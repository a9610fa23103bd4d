//! Batches: the path that every task takes several times, so it does nothing but step prepared statements.

use chongming_core::TaskSnapshot;
use chongming_core::Transition;
use chongming_core::store::{Entry, EntryError, Now, Touch};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::codes;
use crate::row::{encode, integer, optional_time, resolve, unsigned};

const INSERT: &str = "INSERT INTO tasks (id, status, status_version, bucket, name, owner, supervisor, \
    created_at, updated_at, queued_at, started_at, attempt_started_at, ended_at, attempt, max_attempts, \
    priority, label, bucket_key, tags, value, failure_kind, failure_message, failure_retryable) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
    ?22, ?23) ON CONFLICT (id) DO NOTHING";

/// By sequence number, which the lookup before it has found: no second search by id, and nothing to return.
const UPDATE: &str = "UPDATE tasks SET status = ?2, status_version = ?3, owner = ?4, supervisor = ?5, \
    updated_at = ?6, queued_at = ?7, started_at = ?8, attempt_started_at = ?9, ended_at = ?10, attempt = ?11, \
    max_attempts = ?12, priority = ?13, label = ?14, tags = ?15, value = ?16, failure_kind = ?17, \
    failure_message = ?18, failure_retryable = ?19 WHERE seq = ?1";

const FIND: &str = "SELECT seq, status_version, tags FROM tasks WHERE id = ?1";

/// From the index of tags, which is to have what the task's row has.
const UNTAG: &str = "DELETE FROM task_tags \
    WHERE (tag, task_seq) IN (SELECT value, ?1 FROM json_each(?2))";

const TAG: &str =
    "INSERT INTO task_tags (tag, task_seq) SELECT DISTINCT value, ?1 FROM json_each(?2)";

const LEASE: &str = "SELECT n.lease_until FROM tasks t JOIN nodes n ON n.incarnation = t.supervisor \
    WHERE t.seq = ?1 AND n.lease_until > ?2";

const APPEND: &str = "INSERT OR IGNORE INTO transitions \
    (task_seq, version, from_status, to_status, at, trigger, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const TOUCH: &str = "UPDATE tasks SET last_heartbeat_at = coalesce(?2, last_heartbeat_at), \
    progress_done = iif(?3, ?4, progress_done), progress_total = iif(?3, ?5, progress_total), \
    progress_unit = iif(?3, ?6, progress_unit), progress_message = iif(?3, ?7, progress_message) \
    WHERE id = ?1";

type Refusable = Result<(), EntryError>;

/// The statements of a batch, looked up once.
struct Batch<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    find: CachedStatement<'c>,
    update: CachedStatement<'c>,
    append: CachedStatement<'c>,
}

/// Writes the entries; to be called in an immediate transaction.
pub(crate) fn write(
    connection: &Connection,
    entries: &[Entry],
) -> rusqlite::Result<Vec<Refusable>> {
    let mut batch = Batch {
        connection,
        insert: connection.prepare_cached(INSERT)?,
        find: connection.prepare_cached(FIND)?,
        update: connection.prepare_cached(UPDATE)?,
        append: connection.prepare_cached(APPEND)?,
    };
    entries.iter().map(|entry| batch.entry(entry)).collect()
}

impl Batch<'_> {
    fn entry(&mut self, entry: &Entry) -> rusqlite::Result<Refusable> {
        match entry {
            Entry::Create { snapshot, transitions } => self.create(snapshot, transitions),
            Entry::Save { snapshot, expect_version, transitions, if_expired } => {
                let id = snapshot.id.as_str();
                let found = self.find.query_row([id], |row| {
                    Ok((row.get(0)?, unsigned(row, 1)?, row.get::<_, Option<String>>(2)?))
                });
                let Some((seq, stored, tags)) = found.optional()? else {
                    return Ok(Err(EntryError::NotFound));
                };
                if stored != *expect_version {
                    return Ok(Err(EntryError::Conflict { stored }));
                }
                if snapshot.status_version() <= stored {
                    return Ok(Err(EntryError::NotNewer));
                }
                if let Some(now) = if_expired
                    && let Some(held) = self.held(seq, *now)?
                {
                    return Ok(Err(held));
                }
                self.save(seq, tags.as_deref(), snapshot)?;
                self.append(seq, transitions)?;
                Ok(Ok(()))
            }
            Entry::Touch(touch) => self.touch(touch),
        }
    }

    fn create(&mut self, task: &TaskSnapshot, trail: &[Transition]) -> rusqlite::Result<Refusable> {
        let encoded = encode(task)?;
        let failure = task.failure.as_deref();
        let inserted = self.insert.execute(params![
            task.id.as_str(),
            codes::status(task.status()),
            encoded.version,
            task.bucket,
            &*task.name,
            &*task.owner,
            task.supervisor.as_ref().map(|id| id.as_str()),
            task.created_at.as_micros(),
            task.updated_at.as_micros(),
            task.queued_at.map(|t| t.as_micros()),
            task.started_at.map(|t| t.as_micros()),
            task.attempt_started_at.map(|t| t.as_micros()),
            task.ended_at.map(|t| t.as_micros()),
            task.attempt,
            task.max_attempts,
            task.priority,
            task.label.as_deref(),
            task.bucket_key.as_deref(),
            encoded.tags.as_deref(),
            encoded.value.as_deref(),
            failure.map(|f| f.kind.as_str()),
            failure.map(|f| &*f.message),
            failure.map(|f| f.retryable),
        ])?;
        if inserted == 0 {
            return Ok(Err(EntryError::Exists));
        }
        let seq = self.connection.last_insert_rowid();
        self.tag(seq, None, encoded.tags.as_deref())?;
        self.append(seq, trail)?;
        Ok(Ok(()))
    }

    /// Keeps the index of tags.
    fn tag(&self, seq: i64, before: Option<&str>, now: Option<&str>) -> rusqlite::Result<()> {
        if before == now {
            return Ok(());
        }
        self.connection.prepare_cached(UNTAG)?.execute(params![seq, before])?;
        self.connection.prepare_cached(TAG)?.execute(params![seq, now])?;
        Ok(())
    }

    fn held(&self, seq: i64, now: Now) -> rusqlite::Result<Option<EntryError>> {
        let mut lease = self.connection.prepare_cached(LEASE)?;
        let now = resolve(now).as_micros();
        let until = lease.query_row([seq, now], |row| optional_time(row, 0)).optional()?.flatten();
        Ok(until.map(|until| EntryError::LeaseHeld { until }))
    }

    fn save(&mut self, seq: i64, tags: Option<&str>, task: &TaskSnapshot) -> rusqlite::Result<()> {
        let encoded = encode(task)?;
        let failure = task.failure.as_deref();
        self.update.execute(params![
            seq,
            codes::status(task.status()),
            encoded.version,
            &*task.owner,
            task.supervisor.as_ref().map(|id| id.as_str()),
            task.updated_at.as_micros(),
            task.queued_at.map(|t| t.as_micros()),
            task.started_at.map(|t| t.as_micros()),
            task.attempt_started_at.map(|t| t.as_micros()),
            task.ended_at.map(|t| t.as_micros()),
            task.attempt,
            task.max_attempts,
            task.priority,
            task.label.as_deref(),
            encoded.tags.as_deref(),
            encoded.value.as_deref(),
            failure.map(|f| f.kind.as_str()),
            failure.map(|f| &*f.message),
            failure.map(|f| f.retryable),
        ])?;
        self.tag(seq, tags, encoded.tags.as_deref())
    }

    fn append(&mut self, seq: i64, trail: &[Transition]) -> rusqlite::Result<()> {
        for transition in trail {
            self.append.execute(params![
                seq,
                integer(transition.version)?,
                codes::status(transition.from),
                codes::status(transition.to),
                transition.at.as_micros(),
                codes::trigger(transition.trigger),
                transition.reason.as_deref(),
            ])?;
        }
        Ok(())
    }

    fn touch(&self, touch: &Touch) -> rusqlite::Result<Refusable> {
        let progress = touch.progress.as_deref();
        let touched = self.connection.prepare_cached(TOUCH)?.execute(params![
            touch.task_id.as_str(),
            touch.heartbeat_at.map(|t| t.as_micros()),
            progress.is_some(),
            progress.map(|p| p.done),
            progress.and_then(|p| p.total),
            progress.and_then(|p| p.unit.as_deref()),
            progress.and_then(|p| p.message.as_deref()),
        ])?;
        Ok(if touched == 0 { Err(EntryError::NotFound) } else { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Subject;
    use crate::{prune, schema};
    use chongming_core::store::PruneRequest;
    use chongming_core::{Status, TaskId, Timestamp, Trigger, machine};
    use std::time::Duration;

    fn indexed(connection: &Connection) -> Vec<String> {
        let mut statement =
            connection.prepare("SELECT tag || task_seq FROM task_tags ORDER BY 1").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn the_index_of_tags_follows_every_change() {
        let mut connection = Connection::open_in_memory().unwrap();
        let subject = Subject { name: "x".into(), lock_wait: Duration::ZERO };
        schema::ensure(&mut connection, &subject).unwrap();
        let at = Timestamp::from_micros(1);
        let mut task = TaskSnapshot::pending(TaskId::new("t").unwrap(), "n", "o".into(), at);
        let create = |task: &TaskSnapshot| Entry::Create {
            snapshot: task.clone().into(),
            transitions: vec![],
        };
        task.tags = ["b".into(), "a".into(), "b".into()].into();
        let plain = TaskSnapshot::pending(TaskId::new("plain").unwrap(), "n", "o".into(), at);
        let answers = write(&connection, &[create(&task), create(&plain)]).unwrap();
        assert_eq!(answers, [Ok(()), Ok(())]);
        assert_eq!(indexed(&connection), ["a1", "b1"]);

        // A refused entry changes nothing.
        task.tags = ["z".into()].into();
        assert_eq!(write(&connection, &[create(&task)]).unwrap(), [Err(EntryError::Exists)]);
        assert_eq!(indexed(&connection), ["a1", "b1"]);

        task.tags = ["c".into()].into();
        let row = machine::apply(&mut task, Status::Cancelled, Trigger::UserCancel, at, None);
        let save = Entry::Save {
            snapshot: task.clone().into(),
            expect_version: 0,
            transitions: vec![row.unwrap()],
            if_expired: None,
        };
        assert_eq!(write(&connection, &[save]).unwrap(), [Ok(())]);
        assert_eq!(indexed(&connection), ["c1"]);

        let request = PruneRequest { before: Timestamp::from_micros(2), limit: 9, dry_run: false };
        let ended = prune::ended(&connection, &request).unwrap();
        assert_eq!(prune::delete(&connection, &ended).unwrap(), 1);
        assert!(indexed(&connection).is_empty());
    }
}
