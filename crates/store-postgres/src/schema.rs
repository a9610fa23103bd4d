//! Tables, indexes and their versions.

use chongming_core::store::{StoreError, StoreErrorKind};
use chongming_core::{Status, Trigger};

use crate::codes;
use crate::connection::{Link, quoted};
use crate::error::{Result, Subject};
use crate::row::get;

/// The schema that this program writes; the number of migrations.
pub(crate) const VERSION: i32 = 1;

/// Each turns the schema before it into the next; the first makes it from nothing.
const MIGRATIONS: [fn() -> String; VERSION as usize] = [first];

/// Indexes are few because each costs write rate. The partial ones hold unfinished tasks, which are few, and
/// those that ended badly; `succeeded`, where almost every task ends, is in none of them.
fn first() -> String {
    let (ended, succeeded) = (codes::FIRST_ENDED, codes::SUCCEEDED);
    let mut sql = format!(
        "CREATE TABLE ~tasks (
             seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             status_version BIGINT NOT NULL,
             bucket BIGINT,
             created_at TIMESTAMPTZ NOT NULL,
             updated_at TIMESTAMPTZ NOT NULL,
             queued_at TIMESTAMPTZ,
             started_at TIMESTAMPTZ,
             attempt_started_at TIMESTAMPTZ,
             ended_at TIMESTAMPTZ,
             last_heartbeat_at TIMESTAMPTZ,
             attempt BIGINT NOT NULL,
             max_attempts BIGINT NOT NULL,
             progress_done DOUBLE PRECISION,
             progress_total DOUBLE PRECISION,
             priority INTEGER NOT NULL,
             status SMALLINT NOT NULL,
             failure_retryable BOOLEAN,
             id TEXT COLLATE \"C\" NOT NULL UNIQUE,
             name TEXT COLLATE \"C\" NOT NULL,
             owner TEXT COLLATE \"C\" NOT NULL,
             supervisor TEXT COLLATE \"C\",
             label TEXT COLLATE \"C\",
             bucket_key TEXT COLLATE \"C\",
             tags JSONB,
             value JSON,
             failure_kind TEXT,
             failure_message TEXT,
             progress_unit TEXT,
             progress_message TEXT
         ) WITH (fillfactor = 80);
         CREATE INDEX tasks_unfinished ON ~tasks (seq) WHERE status < {ended};
         CREATE INDEX tasks_by_holder ON ~tasks (supervisor, seq)
             WHERE status < {ended} AND supervisor IS NOT NULL;
         CREATE INDEX tasks_ended_badly ON ~tasks (status, seq) WHERE status > {succeeded};
         CREATE INDEX tasks_by_tag ON ~tasks USING GIN (tags jsonb_path_ops) WHERE tags IS NOT NULL;

         CREATE TABLE ~transitions (
             task_seq BIGINT NOT NULL,
             version BIGINT NOT NULL,
             at TIMESTAMPTZ NOT NULL,
             from_status SMALLINT NOT NULL,
             to_status SMALLINT NOT NULL,
             trigger SMALLINT NOT NULL,
             reason TEXT,
             PRIMARY KEY (task_seq, version)
         );

         CREATE TABLE ~commands (
             seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             issued_at TIMESTAMPTZ NOT NULL,
             claimed_until TIMESTAMPTZ,
             completed_at TIMESTAMPTZ,
             id TEXT COLLATE \"C\" NOT NULL UNIQUE,
             task_id TEXT COLLATE \"C\" NOT NULL,
             holder TEXT COLLATE \"C\" NOT NULL,
             kind TEXT NOT NULL,
             reason TEXT,
             issuer TEXT NOT NULL,
             receipt TEXT,
             detail TEXT
         );
         CREATE INDEX commands_open ON ~commands (holder, seq) WHERE receipt IS NULL;
         CREATE INDEX commands_by_task ON ~commands (task_id, seq);

         CREATE TABLE ~nodes (
             incarnation TEXT COLLATE \"C\" PRIMARY KEY,
             started_at TIMESTAMPTZ NOT NULL,
             lease_until TIMESTAMPTZ NOT NULL,
             pid BIGINT NOT NULL,
             num_buckets BIGINT NOT NULL,
             owner TEXT COLLATE \"C\" NOT NULL,
             host TEXT NOT NULL,
             owned_buckets TEXT,
             artifacts TEXT
         ) WITH (fillfactor = 50);

         CREATE TABLE ~facts (fact TEXT COLLATE \"C\" PRIMARY KEY, value TEXT NOT NULL);

         CREATE TABLE ~status_words (code SMALLINT PRIMARY KEY, word TEXT NOT NULL);
         CREATE TABLE ~trigger_words (code SMALLINT PRIMARY KEY, word TEXT NOT NULL);
         CREATE VIEW ~task_list AS
             SELECT s.word AS state, t.* FROM ~tasks t JOIN ~status_words s ON s.code = t.status;
         CREATE VIEW ~trail AS
             SELECT k.id, t.version, f.word AS \"from\", s.word AS \"to\", t.at, g.word AS \"trigger\", t.reason
             FROM ~transitions t JOIN ~tasks k ON k.seq = t.task_seq
             JOIN ~status_words f ON f.code = t.from_status JOIN ~status_words s ON s.code = t.to_status
             JOIN ~trigger_words g ON g.code = t.trigger;
         CREATE TABLE ~schema_version (version INTEGER NOT NULL);
         INSERT INTO ~schema_version VALUES (0);"
    );
    for status in Status::ALL {
        let code = codes::status(status);
        sql.push_str(&format!("INSERT INTO ~status_words VALUES ({code}, '{status}');\n"));
    }
    for &trigger in Trigger::ALL {
        let code = codes::trigger(trigger);
        sql.push_str(&format!("INSERT INTO ~trigger_words VALUES ({code}, '{trigger}');\n"));
    }
    sql
}

/// What a database has under the schema's name.
enum Found {
    /// No such schema.
    Nothing,
    /// A schema without tables.
    Empty,
    /// A schema of ours.
    Version(i32),
    /// Somebody else's tables.
    Foreign,
}

/// Asks the catalogue first, which everybody may read.
fn look(link: &mut Link, subject: &Subject) -> Result<Found> {
    let catalogue = "SELECT count(c.oid), count(c.oid) FILTER (WHERE c.relname = 'schema_version'), \
                            count(c.oid) FILTER (WHERE c.relname IN ('tasks', 'transitions')) \
                     FROM pg_catalog.pg_namespace n \
                     LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v') \
                     WHERE n.nspname = $1 GROUP BY n.oid";
    let Some(row) = link.query_opt(catalogue, &[&subject.schema])? else {
        return Ok(Found::Nothing);
    };
    match (get::<i64>(&row, 0)?, get::<i64>(&row, 1)?, get::<i64>(&row, 2)?) {
        (0, _, _) => Ok(Found::Empty),
        (_, 1, 2) => {
            let row = link.query_opt("SELECT version FROM ~schema_version", &[])?;
            Ok(row.map_or(Ok(Found::Foreign), |row| get(&row, 0).map(Found::Version))?)
        }
        _ => Ok(Found::Foreign),
    }
}

/// Refuses what this program must not touch; says whether the schema is to be made or raised.
fn judge(found: &Found, subject: &Subject) -> std::result::Result<bool, StoreError> {
    let foreign = |what: &str| Err(subject.refuse(StoreErrorKind::Foreign, "open", what));
    let schema = &subject.schema;
    match found {
        Found::Nothing | Found::Empty => Ok(true),
        Found::Version(version) if *version <= VERSION => Ok(*version < VERSION),
        Found::Version(version) => foreign(&format!(
            "was written by a newer version (schema {schema} has version {version}; this program knows \
             {VERSION}); use that version"
        )),
        Found::Foreign => foreign(&format!(
            "has tables of another program in schema {schema}; nothing was changed, give another schema"
        )),
    }
}

/// Checks the tables of an existing database.
pub(crate) fn check(link: &mut Link, subject: &Subject) -> std::result::Result<(), StoreError> {
    let found = look(link, subject).map_err(|fault| subject.error("open", fault))?;
    let foreign = |what: &str| Err(subject.refuse(StoreErrorKind::Foreign, "open", what));
    match (judge(&found, subject)?, found) {
        (_, Found::Nothing | Found::Empty) => foreign(&format!(
            "has no tables in schema {}; check its name, or run a task with it to make them",
            subject.schema
        )),
        (false, Found::Version(_) | Found::Foreign) => Ok(()),
        (true, Found::Version(_) | Found::Foreign) => foreign(
            "was written by an older version; run a task with it once to bring it up to date",
        ),
    }
}

/// Makes the tables where there are none, and raises an older schema. Any number of programs may do this at
/// once: the first does it, the others wait for it. Then sees whether the role may write to them.
pub(crate) fn ensure(link: &mut Link, subject: &Subject) -> std::result::Result<(), StoreError> {
    let error = |fault| subject.error("open", fault);
    if judge(&look(link, subject).map_err(error)?, subject)? {
        let found = link.transaction(|link| raise(link, subject)).map_err(error)?;
        judge(&found, subject)?;
    }
    match link.script(WRITES_NOTHING).map_err(error) {
        Err(denied) if denied.kind() == StoreErrorKind::Denied => Err(denied),
        // Whoever is held up by others now may still write later.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// All that a holder of tasks has to be allowed; a server looks at rights, and whether it is read-only, before it
/// looks for rows. Without this, a task would run of which nothing can be recorded.
const WRITES_NOTHING: &str = "
    SET LOCAL lock_timeout = '100ms';
    INSERT INTO ~tasks (id) SELECT id FROM ~tasks WHERE false;
    UPDATE ~tasks SET status = status WHERE false;
    INSERT INTO ~transitions SELECT * FROM ~transitions WHERE false;
    UPDATE ~commands SET receipt = receipt WHERE false;
    INSERT INTO ~nodes SELECT * FROM ~nodes WHERE false;
    UPDATE ~nodes SET lease_until = lease_until WHERE false;
    INSERT INTO ~facts SELECT * FROM ~facts WHERE false;";

fn raise(link: &mut Link, subject: &Subject) -> Result<Found> {
    // Waiting for others and building an index may take long.
    link.batch("SET LOCAL statement_timeout = 0")?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('chongming-task/' || $1, 0))";
    link.query_one(lock, &[&subject.schema])?;
    let found = look(link, subject)?; // another program may have been quicker
    let from = match found {
        Found::Nothing => {
            link.batch(&format!("CREATE SCHEMA {}", quoted(&subject.schema)))?;
            0
        }
        Found::Empty => 0,
        Found::Version(version) => usize::try_from(version).unwrap_or(0),
        Found::Foreign => return Ok(found),
    };
    for migration in MIGRATIONS.iter().skip(from) {
        link.script(&migration())?;
    }
    if from < MIGRATIONS.len() {
        link.script(&format!("UPDATE ~schema_version SET version = {VERSION}"))?;
    }
    Ok(found)
}
