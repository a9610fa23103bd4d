//! How fast one task, a page, the first page of `ps` and a tag's page are read among a million tasks, beside
//! a bare loop that takes the same rows out with a prepared statement.
//!
//! `--json` prints one object a line.

use std::hint::black_box;
use std::time::{Duration, Instant};

use chongming_core::store::{TaskFilter, TaskQuery, TaskStore};
use chongming_core::{StatusSet, TaskId};
use chongming_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;
use rusqlite::types::Value;

#[path = "support/report.rs"]
mod report;

use report::Report;

type Anything = Box<dyn std::error::Error + Send + Sync>;

const SAMPLES: usize = 200;
/// What is slow is not asked so often.
const LIMIT: Duration = Duration::from_secs(2);

/// Of a hundred tasks one is unfinished and one has failed; of ten thousand one has the tag `rare`.
const FILL: &str = "INSERT INTO tasks (id, status, status_version, name, owner, supervisor, created_at, \
        updated_at, queued_at, started_at, ended_at, attempt, max_attempts, priority, bucket, bucket_key, tags) \
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) \
    SELECT printf('%032d', i), CASE i % 100 WHEN 0 THEN 5 WHEN 1 THEN 10 ELSE 9 END, 4, 'noop', \
        'machine-17:4242', 'life-' || i / 1000, 1800000000000000, 1800000000000000, 1800000000000000, \
        1800000000000000, 1800000000000000, 1, 1, 0, i % 64, 'tenant-' || i % 64, \
        CASE WHEN i % 10000 = 7 THEN '[\"io\",\"rare\"]' WHEN i % 10 = 0 THEN '[\"io\"]' END FROM n; \
    INSERT INTO task_tags SELECT j.value, t.seq FROM tasks t, json_each(t.tags) j";

const COLUMNS: &str = "t.id, t.status, t.status_version, t.bucket, t.name, t.owner, t.supervisor, \
    t.created_at, t.updated_at, t.queued_at, t.started_at, t.attempt_started_at, t.ended_at, t.attempt, \
    t.max_attempts, t.priority, t.label, t.bucket_key, t.tags, t.value, t.failure_kind, t.failure_message, \
    t.failure_retryable, t.last_heartbeat_at, t.progress_done, t.progress_total, t.progress_unit, \
    t.progress_message, t.seq, n.lease_until";

/// A page of the store, and the statement that finds the rows on it most directly.
struct Page {
    name: &'static str,
    filter: TaskFilter,
    limit: usize,
    /// Of the raw statement, one more where there is another page.
    rows: usize,
    raw: String,
}

/// The rows with these numbers, newest first.
fn numbered(seqs: impl Iterator<Item = u32>) -> String {
    let seqs: Vec<String> = seqs.map(|seq| seq.to_string()).collect();
    format!("t.seq IN ({}) ORDER BY t.seq DESC", seqs.join(", "))
}

fn pages() -> [Page; 4] {
    let tagged = |tag: &str| TaskFilter { tags: vec![tag.into()], ..TaskFilter::default() };
    let unfinished = Some(StatusSet::unfinished());
    [
        Page {
            name: "sqlite_page_1m",
            filter: TaskFilter::default(),
            limit: 100,
            rows: 101,
            raw: "t.seq < 9999999 ORDER BY t.seq DESC LIMIT 101".to_owned(),
        },
        Page {
            name: "sqlite_ps_page_1m",
            filter: TaskFilter { statuses: unfinished, ..TaskFilter::default() },
            limit: 1000,
            rows: 1001,
            raw: "t.status = 5 AND t.status <> 9 ORDER BY t.seq DESC LIMIT 1001".to_owned(),
        },
        Page {
            name: "sqlite_tag_page_1m",
            filter: tagged("io"),
            limit: 100,
            rows: 101,
            raw: numbered((0..101).map(|i| 1_000_000 - i * 10)),
        },
        Page {
            name: "sqlite_rare_tag_1m",
            filter: tagged("rare"),
            limit: 1000,
            rows: 100,
            raw: numbered((0..100).map(|i| i * 10_000 + 7)),
        },
    ]
}

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    let get = "sqlite_get_1m";
    let pages = pages();
    if !pages.iter().map(|page| page.name).chain([get]).any(|name| report.wants(name)) {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.db");
    SqliteStore::open(&path, Options::default())?.close()?;
    let connection = Connection::open(&path)?;
    connection.execute_batch(FILL)?;
    let store = SqliteStore::open(&path, Options::default())?;
    if report.wants(get) {
        let id = TaskId::new(format!("{:032}", 777_777))?;
        let raw = raw(&connection, &format!("t.id = '{id}'"), 1)?;
        let ours = median(|| match store.get(&id)? {
            Some(_) => Ok(()),
            None => Err("the task is not there".into()),
        })?;
        report.line(get, ours, "µs", raw);
    }
    for Page { name, filter, limit, rows, raw: condition } in pages {
        if !report.wants(name) {
            continue;
        }
        let raw = raw(&connection, &condition, rows)?;
        let query = TaskQuery { filter, after: None, limit };
        let ours = median(|| match store.query(&query)?.tasks.len() {
            found if found == limit.min(rows) => Ok(()),
            other => Err(format!("{other} tasks on the page").into()),
        })?;
        report.line(name, ours, "µs", raw);
    }
    Ok(store.close()?)
}

/// Median time of one run, in microseconds.
fn median(mut run: impl FnMut() -> Result<(), Anything>) -> Result<f64, Anything> {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < SAMPLES && (times.len() < 3 || start.elapsed() < LIMIT) {
        let since = Instant::now();
        run()?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(f64::NAN))
}

/// The prepared statement, and every column of every row taken out as what owns it.
fn raw(connection: &Connection, condition: &str, expected: usize) -> Result<f64, Anything> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks t LEFT JOIN nodes n ON n.incarnation = t.supervisor WHERE {condition}"
    );
    let mut statement = connection.prepare(&sql)?;
    let columns = statement.column_count();
    median(|| {
        let mut rows = statement.query([])?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            found += 1;
            for column in 0..columns {
                black_box(row.get::<_, Value>(column)?);
            }
        }
        if found != expected {
            return Err(format!("{found} rows").into());
        }
        Ok(())
    })
}
