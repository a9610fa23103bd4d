//! The same rows without any of the store's code: prepared statements, arrays for batches, rows joined by
//! number, and nothing asked for but the count of what was written.

use std::thread;
use std::time::Instant;

use crate::percentiles;
use crate::server::{Anything, Server};

pub(crate) const NAME: &str = "noop";
pub(crate) const OWNER: &str = "machine-17:4242";
pub(crate) const HOLDER: &str = "019a0b1c2d3e4f5061728394a5b6c7d8";

/// Two connections write faster than one, and as fast as eight.
const CONNECTIONS: usize = 2;

pub(crate) fn id(number: usize) -> String {
    format!("{number:032}")
}

/// How a task is written, in two commits for each batch.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A task row, then one update and one audit row for each of four changes of status.
    EachStep,
    /// What a journal under load writes: each commit's last state, with all audit rows.
    Coalesced,
}

/// Tasks per second.
pub(crate) fn rate(
    server: &Server,
    shape: Shape,
    tasks: usize,
    batch: usize,
) -> Result<f64, Anything> {
    let since = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|share| {
                let numbers = tasks * share / CONNECTIONS..tasks * (share + 1) / CONNECTIONS;
                scope.spawn(move || write(server, shape, &numbers.collect::<Vec<_>>(), batch))
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().map_err(|_| "it panicked")?);
        done.collect::<Result<(), Anything>>()
    })?;
    Ok(tasks as f64 / since.elapsed().as_secs_f64())
}

/// Creates in state `to`, with the audit rows `rows` (version, from, to, trigger).
fn create(to: u8, version: u8, rows: &str) -> String {
    format!(
        "WITH made AS (INSERT INTO tasks (id, status, status_version, owner, supervisor, updated_at, \
         queued_at, attempt_started_at, attempt, max_attempts, priority, name, created_at) \
         SELECT id, {to}, {version}, $2, $3, to_timestamp(1800000000), to_timestamp(1800000000), \
         to_timestamp(1800000000), 1, 1, 0, '{NAME}', to_timestamp(1800000000) \
         FROM unnest($1::text[]) id RETURNING id, seq), \
         trail AS (INSERT INTO transitions (task_seq, version, at, from_status, to_status, trigger) \
         SELECT m.seq, r.version, to_timestamp(1800000000), r.f, r.t, r.g FROM made m, \
         (VALUES {rows}) r(version, f, t, g)) SELECT count(*) FROM made"
    )
}

fn save(to: u8, (expected, version): (u8, u8), rows: &str) -> String {
    format!(
        "WITH saved AS (UPDATE tasks t SET status = {to}, status_version = {version}, owner = $2, \
         supervisor = $3, updated_at = to_timestamp(1800000001), started_at = to_timestamp(1800000001), \
         ended_at = to_timestamp(1800000001), value = 'null' FROM unnest($1::text[]) v(id) \
         WHERE t.id = v.id AND t.status_version = {expected} RETURNING t.seq), \
         trail AS (INSERT INTO transitions (task_seq, version, at, from_status, to_status, trigger) \
         SELECT s.seq, r.version, to_timestamp(1800000001), r.f, r.t, r.g FROM saved s, \
         (VALUES {rows}) r(version, f, t, g)) SELECT count(*) FROM saved"
    )
}

const STEPS: [&str; 4] = ["(1, 0, 2, 0)", "(2, 2, 4, 18)", "(3, 4, 5, 19)", "(4, 5, 9, 21)"];

/// The statements of the first and of the second commit.
fn commits(shape: Shape) -> [Vec<String>; 2] {
    let [queued, starting, running, ended] = STEPS;
    match shape {
        Shape::EachStep => [
            vec![create(2, 1, queued), save(4, (1, 2), starting)],
            vec![save(5, (2, 3), running), save(9, (3, 4), ended)],
        ],
        Shape::Coalesced => [
            vec![create(4, 2, &format!("{queued}, {starting}"))],
            vec![save(9, (2, 4), &format!("{running}, {ended}"))],
        ],
    }
}

fn write(server: &Server, shape: Shape, numbers: &[usize], batch: usize) -> Result<(), Anything> {
    let mut client = server.client()?;
    let commits = commits(shape)
        .map(|sql| sql.iter().map(|sql| client.prepare(sql)).collect::<Result<Vec<_>, _>>());
    for chunk in numbers.chunks(batch) {
        let ids: Vec<String> = chunk.iter().copied().map(id).collect();
        for statements in &commits {
            let mut transaction = client.transaction()?;
            for statement in statements.as_ref().map_err(ToString::to_string)? {
                let row = transaction.query_one(statement, &[&ids, &OWNER, &HOLDER])?;
                if usize::try_from(row.try_get::<_, i64>(0)?) != Ok(ids.len()) {
                    return Err("not all were written".into());
                }
            }
            transaction.commit()?;
        }
    }
    Ok(())
}

/// One task with two audit rows in one statement; median and 99th percentile in µs.
pub(crate) fn create_latency(server: &Server, samples: usize) -> Result<(f64, f64), Anything> {
    let mut client = server.client()?;
    let [queued, starting, ..] = STEPS;
    let sql = create(4, 2, &format!("{queued}, {starting}"));
    let statement = client.prepare(&sql.replace("unnest($1::text[]) id", "(VALUES ($1)) v(id)"))?;
    let mut times = Vec::new();
    for number in 0..samples {
        let id = id(number);
        let since = Instant::now();
        client.query_one(&statement, &[&id, &OWNER, &HOLDER])?;
        times.push(since.elapsed());
    }
    Ok(percentiles(times))
}
