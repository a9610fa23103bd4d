//! How fast a page, one task, and a holder's first page are read among a million tasks, beside the store's
//! own prepared statement in a bare loop that reads the same columns.
//!
//! `--json` prints one object a line. `CHONGMING_TEST_POSTGRES` names the server.

use std::time::Instant;

use chongming_core::store::{TaskFilter, TaskQuery, TaskStore};
use chongming_core::{StatusSet, TaskId};
use chongming_store_postgres::{Options, PostgresStore};
use postgres::types::ToSql;
use postgres::{Client, Row};

#[path = "../../store-sqlite/benches/support/report.rs"]
mod report;
#[path = "support/server.rs"]
mod server;

use report::Report;
use server::{Anything, SCHEMA, Server};

const SAMPLES: usize = 500;
const PAGE: usize = 100;
/// What `ps` asks for.
const PS_PAGE: usize = 1000;

/// Of a hundred tasks one is unfinished and one has failed.
const FILL: &str = "INSERT INTO tasks (id, status, status_version, name, owner, supervisor, created_at, \
        updated_at, queued_at, started_at, ended_at, attempt, max_attempts, priority, bucket, bucket_key) \
    SELECT lpad(i::text, 32, '0'), CASE i % 100 WHEN 0 THEN 5 WHEN 1 THEN 10 ELSE 9 END, 4, 'noop', \
        'machine-17:4242', 'life-' || i / 1000, now(), now(), now(), now(), now(), 1, 1, 0, i % 64, \
        'tenant-' || i % 64 FROM generate_series(1, 1000000) i; VACUUM ANALYZE tasks";

const COLUMNS: &str = "t.id, t.status, t.status_version, t.bucket, t.name, t.owner, \
    t.supervisor, t.created_at, t.updated_at, t.queued_at, t.started_at, t.attempt_started_at, t.ended_at, \
    t.attempt, t.max_attempts, t.priority, t.label, t.bucket_key, t.tags::text, t.value::text, \
    t.failure_kind, t.failure_message, t.failure_retryable, t.last_heartbeat_at, t.progress_done, \
    t.progress_total, t.progress_unit, t.progress_message, t.seq, n.lease_until";

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    let names = ["postgres_get_1m", "postgres_page_1m", "postgres_ps_page_1m"];
    if !names.iter().any(|name| report.wants(name)) {
        return Ok(());
    }
    let Some(server) = Server::find() else { return Ok(()) };
    server.fresh(|| {
        let mut client = server.client()?;
        for statement in FILL.split(';') {
            client.batch_execute(statement)?;
        }
        let options = Options { schema: SCHEMA.to_owned(), ..Options::default() };
        let store = PostgresStore::connect_existing(&server.dsn, options)?;
        let [get, all, unfinished] = names;
        if report.wants(get) {
            let id = TaskId::new(format!("{:032}", 777_777))?;
            let sql = format!(
                "SELECT {COLUMNS} FROM tasks t LEFT JOIN nodes n ON n.incarnation = t.supervisor \
                 WHERE t.id = $1"
            );
            let raw = raw(&mut client, &sql, &[&id.as_str()], 1)?;
            let ours = median(|| match store.get(&id)? {
                Some(_) => Ok(()),
                None => Err("the task is not there".into()),
            })?;
            report.line(get, ours, "µs", raw);
        }
        let pages = [
            (all, "TRUE", None, PAGE),
            (unfinished, "t.status < 9", Some(StatusSet::unfinished()), PS_PAGE),
        ];
        for (name, condition, statuses, limit) in pages {
            if !report.wants(name) {
                continue;
            }
            let sql = format!(
                "SELECT {COLUMNS} FROM (SELECT * FROM tasks t WHERE {condition} AND t.seq < $1 \
                 ORDER BY t.seq DESC LIMIT {}) t LEFT JOIN nodes n ON n.incarnation = t.supervisor \
                 ORDER BY t.seq DESC",
                limit + 1
            );
            let raw = raw(&mut client, &sql, &[&i64::MAX], limit + 1)?;
            let filter = TaskFilter { statuses, ..TaskFilter::default() };
            let query = TaskQuery { filter, after: None, limit };
            let ours = median(|| match store.query(&query)?.tasks.len() {
                found if found == limit => Ok(()),
                other => Err(format!("{other} tasks on the page").into()),
            })?;
            report.line(name, ours, "µs", raw);
        }
        Ok(store.close()?)
    })?;
    server.clear()
}

/// Median time of one run, in microseconds.
fn median(mut run: impl FnMut() -> Result<(), Anything>) -> Result<f64, Anything> {
    let mut times = Vec::new();
    for _ in 0..SAMPLES {
        let since = Instant::now();
        run()?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(SAMPLES / 2).copied().unwrap_or(f64::NAN))
}

/// The prepared statement, and every column of every row taken out.
fn raw(
    client: &mut Client,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
    expected: usize,
) -> Result<f64, Anything> {
    let statement = client.prepare(sql)?;
    median(|| {
        let rows = client.query(&statement, parameters)?;
        if rows.len() != expected {
            return Err(format!("{} rows", rows.len()).into());
        }
        rows.iter().try_for_each(take_out)
    })
}

/// As owned text and numbers, which is the least that anybody does with a row.
fn take_out(row: &Row) -> Result<(), Anything> {
    use std::time::SystemTime;
    for text in [0, 4, 5, 6, 16, 17, 18, 19, 20, 21, 26, 27] {
        std::hint::black_box(row.try_get::<_, Option<String>>(text)?);
    }
    for number in [2, 3, 13, 14, 28] {
        std::hint::black_box(row.try_get::<_, Option<i64>>(number)?);
    }
    for time in [7, 8, 9, 10, 11, 12, 23, 29] {
        std::hint::black_box(row.try_get::<_, Option<SystemTime>>(time)?);
    }
    std::hint::black_box(row.try_get::<_, i16>(1)?);
    std::hint::black_box(row.try_get::<_, i32>(15)?);
    std::hint::black_box(row.try_get::<_, Option<bool>>(22)?);
    std::hint::black_box(row.try_get::<_, Option<f64>>(24)?);
    std::hint::black_box(row.try_get::<_, Option<f64>>(25)?);
    Ok(())
}
