//! How fast the store writes, against a bare loop of the same kind of statements on the same tables.
//!
//! `CHONGMING_TEST_POSTGRES=postgresql://… cargo bench -p chongming-store-postgres --bench write [CONNECTIONS]`
//!
//! One task = one row, four changes of status in two commits, four audit rows; batches of 1024 tasks. The
//! bare loop sends arrays and joins rows by number, and asks for nothing but the count of what it wrote.

use std::error::Error;
use std::thread;
use std::time::Instant;

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    IncarnationId, Status, TaskId, TaskSnapshot, Timestamp, Trigger, Value, machine,
};
use chongming_store_postgres::{Options, PostgresStore};
use postgres::{Client, NoTls};

const TASKS: usize = 50_000;
const BATCH: usize = 1024;
const ROUNDS: usize = 3;
const SCHEMA: &str = "chongming_bench";

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Fallible<()> {
    let Ok(dsn) = std::env::var("CHONGMING_TEST_POSTGRES") else {
        println!("skipped: CHONGMING_TEST_POSTGRES names no server");
        return Ok(());
    };
    let connections = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let connections = connections.unwrap_or(1);
    for _ in 0..ROUNDS {
        let raw = measure(&dsn, connections, raw)?;
        let store = measure(&dsn, connections, through_the_store)?;
        println!("raw {raw:7.0} t/s   store {store:7.0} t/s   ratio {:.2}", store / raw);
    }
    drop_schema(&dsn)
}

fn drop_schema(dsn: &str) -> Fallible<()> {
    let sql = format!(
        "SET client_min_messages = warning; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CHECKPOINT"
    );
    Ok(Client::connect(dsn, NoTls)?.batch_execute(&sql)?)
}

/// Tasks per second over all connections, on fresh tables.
fn measure(
    dsn: &str,
    connections: usize,
    run: fn(&str, Vec<Vec<Entry>>) -> Fallible<()>,
) -> Fallible<f64> {
    drop_schema(dsn)?;
    let options = Options { schema: SCHEMA.to_owned(), ..Options::default() };
    PostgresStore::connect(dsn, options)?.close()?;
    let shares = (0..connections)
        .map(|share| batches(share, TASKS / connections))
        .collect::<Fallible<Vec<_>>>()?;
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(move || run(dsn, share))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok((TASKS / connections * connections) as f64 / start.elapsed().as_secs_f64())
}

fn created(number: usize) -> Fallible<Entry> {
    let at = Timestamp::from_micros(1_800_000_000_000_000 + number as i64);
    let mut task = TaskSnapshot::pending(TaskId::generate(), "rate", "machine-17:4242".into(), at);
    task.supervisor = Some(IncarnationId::new("019a0b1c2d3e4f5061728394a5b6c7d8")?);
    let transitions = vec![
        machine::apply(&mut task, Status::Queued, Trigger::DependenciesResolved, at, None)?,
        machine::apply(&mut task, Status::Starting, Trigger::Dispatch, at, None)?,
    ];
    Ok(Entry::Create { snapshot: task.into(), transitions })
}

fn ended(created: &Entry) -> Fallible<Entry> {
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
fn batches(share: usize, tasks: usize) -> Fallible<Vec<Vec<Entry>>> {
    let numbers = share * tasks..(share + 1) * tasks;
    let creates = numbers.map(created).collect::<Fallible<Vec<_>>>()?;
    let mut batches = Vec::new();
    for chunk in creates.chunks(BATCH) {
        batches.push(chunk.to_vec());
        batches.push(chunk.iter().map(ended).collect::<Fallible<Vec<_>>>()?);
    }
    Ok(batches)
}

fn through_the_store(dsn: &str, batches: Vec<Vec<Entry>>) -> Fallible<()> {
    let options = Options { schema: SCHEMA.to_owned(), ..Options::default() };
    let store = PostgresStore::connect_existing(dsn, options)?;
    for batch in &batches {
        if store.write(batch)?.iter().any(Result::is_err) {
            return Err("an entry was refused".into());
        }
    }
    Ok(())
}

/// The same rows without any of the store's code.
fn raw(dsn: &str, batches: Vec<Vec<Entry>>) -> Fallible<()> {
    let mut client = Client::connect(dsn, NoTls)?;
    client.batch_execute(&format!("SET search_path = {SCHEMA}"))?;
    let create = client.prepare(
        "WITH made AS (INSERT INTO tasks (id, status, status_version, owner, supervisor, updated_at, \
         queued_at, attempt_started_at, attempt, max_attempts, priority, name, created_at) \
         SELECT id, 4, 2, $2, $3, to_timestamp(1800000000), to_timestamp(1800000000), \
         to_timestamp(1800000000), 1, 1, 0, 'rate', to_timestamp(1800000000) FROM unnest($1::text[]) id \
         RETURNING id, seq), \
         trail AS (INSERT INTO transitions (task_seq, version, at, from_status, to_status, trigger) \
         SELECT m.seq, r.version, to_timestamp(1800000000), r.f, r.t, r.g FROM made m, \
         (VALUES (1, 0, 2, 0), (2, 2, 4, 18)) r(version, f, t, g)) SELECT count(*) FROM made",
    )?;
    let save = client.prepare(
        "WITH saved AS (UPDATE tasks t SET status = 9, status_version = 4, owner = $2, supervisor = $3, \
         updated_at = to_timestamp(1800000001), started_at = to_timestamp(1800000001), \
         ended_at = to_timestamp(1800000001), value = 'null' FROM unnest($1::text[]) v(id) \
         WHERE t.id = v.id AND t.status_version = 2 RETURNING t.seq), \
         trail AS (INSERT INTO transitions (task_seq, version, at, from_status, to_status, trigger) \
         SELECT s.seq, r.version, to_timestamp(1800000001), r.f, r.t, r.g FROM saved s, \
         (VALUES (3, 4, 5, 19), (4, 5, 9, 21)) r(version, f, t, g) ON CONFLICT DO NOTHING) \
         SELECT count(*) FROM saved",
    )?;
    let (owner, holder) = ("machine-17:4242", "019a0b1c2d3e4f5061728394a5b6c7d8");
    for (number, batch) in batches.iter().enumerate() {
        let ids: Vec<&str> = batch.iter().map(|entry| entry.task_id().as_str()).collect();
        let statement = if number % 2 == 0 { &create } else { &save };
        let written: i64 = client.query_one(statement, &[&ids, &owner, &holder])?.try_get(0)?;
        if usize::try_from(written) != Ok(ids.len()) {
            return Err("not all were written".into());
        }
    }
    Ok(())
}
