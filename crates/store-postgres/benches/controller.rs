//! What the whole controller costs on top of bare batches in Postgres: no-op tasks per second with the full
//! trail, through one controller and through four; and one small write.
//!
//! Each figure stands beside a raw limit that is measured in the same run. `--json` prints one object a line.
//! `CHONGMING_TEST_POSTGRES` names the server; `cargo xtask bench` starts one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    Controller, IncarnationId, Status, Submit, TaskContext, TaskDefinition, TaskError, TaskId,
    TaskSnapshot, Timestamp, Trigger, machine,
};
use chongming_store_postgres::{Options, PostgresStore};

#[path = "support/raw.rs"]
mod raw;
#[path = "../../store-sqlite/benches/support/report.rs"]
mod report;
#[path = "support/server.rs"]
mod server;

use raw::Shape;
use report::Report;
use server::{Anything, Server};

/// A task's memory is made on one thread and given back on another: what the system's allocator is worst at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TASKS: usize = 50_000;
/// Tasks to a batch of the raw loop, and slots of each controller.
const BATCH: usize = 1024;
const SUBMITTERS: usize = 4;
const ROUNDS: usize = 3;

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    let Some(server) = Server::find() else { return Ok(()) };
    for controllers in [1, 4] {
        let name = format!("postgres_tasks_{controllers}_controllers");
        if !report.wants(&name) {
            continue;
        }
        let (mut each, mut coalesced, mut ours) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            each.push(server.fresh(|| raw::rate(&server, Shape::EachStep, TASKS, BATCH))?);
            coalesced.push(server.fresh(|| raw::rate(&server, Shape::Coalesced, TASKS, BATCH))?);
            ours.push(server.fresh(|| through_controllers(&server, controllers))?);
        }
        let ours = middle(ours);
        report.line(&name, ours, "tasks/s", middle(each));
        report.line(&format!("{name}_vs_coalesced"), ours, "tasks/s", middle(coalesced));
    }
    if report.wants("postgres_create") {
        let raw = server.fresh(|| raw::create_latency(&server, SAMPLES))?;
        let ours = server.fresh(|| create_latency(&server))?;
        report.line("postgres_create_p50", ours.0, "µs", raw.0);
        report.line("postgres_create_p99", ours.1, "µs", raw.1);
    }
    server.clear()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// From the first submission to the last stored end, over all controllers.
fn through_controllers(server: &Server, controllers: usize) -> Result<f64, Anything> {
    let controllers = (0..controllers)
        .map(|_| {
            let noop = |_: &TaskContext, ()| Ok::<_, TaskError>(());
            let controller = Controller::builder()
                .store(Arc::new(server.connect()?))
                .max_parallel(BATCH)
                .register(TaskDefinition::new("noop", noop))
                .build()?;
            Ok(controller)
        })
        .collect::<Result<Vec<_>, Anything>>()?;
    let share = TASKS / controllers.len();
    let since = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = controllers
            .iter()
            .map(|controller| {
                scope.spawn(move || -> Result<(), Anything> {
                    submit(controller, share);
                    Ok(controller.wait_all(None)?)
                })
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().map_err(|_| "it panicked")?);
        done.collect::<Result<(), Anything>>()
    })?;
    let elapsed = since.elapsed();
    let stats = controllers.first().ok_or("no controller")?.stats()?;
    let total = (share * controllers.len()) as u64;
    if stats.by_status.get(&Status::Succeeded) != Some(&total) || stats.total != total {
        return Err(format!("not every task is stored as succeeded: {stats:?}").into());
    }
    Ok(total as f64 / elapsed.as_secs_f64())
}

fn submit(controller: &Controller, tasks: usize) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                loop {
                    let start = next.fetch_add(BATCH / SUBMITTERS, Ordering::Relaxed);
                    if start >= tasks {
                        return;
                    }
                    let count = (BATCH / SUBMITTERS).min(tasks - start);
                    let runs = controller.submit_many((0..count).map(|_| Submit::new("noop")));
                    assert!(runs.iter().all(Result::is_ok));
                }
            });
        }
    });
}

const SAMPLES: usize = 2000;

/// One commit that creates a task with its first two audit rows; median and 99th percentile in µs.
fn create_latency(server: &Server) -> Result<(f64, f64), Anything> {
    let store = server.connect()?;
    let mut times = Vec::new();
    for number in 0..SAMPLES {
        let entry = [created(number)?];
        let since = Instant::now();
        let answers = store.write(&entry)?;
        times.push(since.elapsed());
        if answers.iter().any(Result::is_err) {
            return Err("an entry was refused".into());
        }
    }
    Ok(percentiles(times))
}

fn created(number: usize) -> Result<Entry, Anything> {
    let at = Timestamp::from_micros(1_800_000_000_000_000 + number as i64);
    let id = TaskId::new(raw::id(number))?;
    let mut task = TaskSnapshot::pending(id, raw::NAME, raw::OWNER.into(), at);
    task.supervisor = Some(IncarnationId::new(raw::HOLDER)?);
    let transitions = vec![
        machine::apply(&mut task, Status::Queued, Trigger::DependenciesResolved, at, None)?,
        machine::apply(&mut task, Status::Starting, Trigger::Dispatch, at, None)?,
    ];
    Ok(Entry::Create { snapshot: task.into(), transitions })
}

/// Median and 99th percentile, in microseconds.
fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    (at(0.5), at(0.99))
}

impl Server {
    fn connect(&self) -> Result<PostgresStore, Anything> {
        let options = Options { schema: server::SCHEMA.to_owned(), ..Options::default() };
        Ok(PostgresStore::connect(&self.dsn, options)?)
    }
}
