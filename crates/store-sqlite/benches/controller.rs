//! What the whole controller costs on top of bare SQLite: no-op tasks per second with the full trail,
//! latency from submission to the running body.
//!
//! Each figure stands beside a raw limit that is measured in the same run. `--json` prints one object a line.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    Clock, Controller, InMemoryStore, IncarnationId, Status, Submit, SystemClock, TaskContext,
    TaskDefinition, TaskError, TaskId, TaskSnapshot, Transition, Trigger, machine,
};
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};

/// A task's memory is made on one thread and given back on another: what the system's allocator is worst at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TASKS: usize = 200_000;
/// Tasks to a batch of the raw loop, and slots of the controller.
const BATCH: usize = 1024;
const SUBMITTERS: usize = 4;
const ROUNDS: usize = 3;

#[path = "support/raw.rs"]
mod raw;
#[path = "support/report.rs"]
mod report;

use raw::Shape;
use report::Report;

type Anything = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    let wanted = |name: &str| report.wants(name);
    if wanted("memory_store") {
        let raw = median(ROUNDS, || store_rate(&InMemoryStore::new()))?;
        let ours = median(ROUNDS, || controller_rate(Arc::new(InMemoryStore::new())))?;
        report.line("memory_store_tasks", ours, "tasks/s", raw);
    }
    for (name, synchronous) in [("normal", Synchronous::Normal), ("full", Synchronous::Full)] {
        if wanted(&format!("sqlite_{name}_tasks")) {
            let (mut raw, mut coalesced) = (vec![], vec![]);
            let (mut store, mut ours) = (vec![], vec![]);
            for _ in 0..ROUNDS {
                raw.push(in_folder(|path| raw::rate(path, synchronous, Shape::EachStep))?);
                coalesced.push(in_folder(|path| raw::rate(path, synchronous, Shape::Coalesced))?);
                store.push(in_folder(|path| store_rate(&open(path, synchronous)?))?);
                ours.push(in_folder(|path| controller_rate(Arc::new(open(path, synchronous)?)))?);
            }
            let (ours, coalesced) = (middle(ours), middle(coalesced));
            report.line(&format!("sqlite_{name}_tasks"), ours, "tasks/s", middle(raw));
            report.line(&format!("sqlite_{name}_tasks_vs_coalesced"), ours, "tasks/s", coalesced);
            let store = middle(store);
            report.line(&format!("sqlite_{name}_store_alone"), store, "tasks/s", coalesced);
        }
    }
    for (name, synchronous) in [("normal", Synchronous::Normal), ("full", Synchronous::Full)] {
        if wanted(&format!("sqlite_{name}_latency")) {
            let raw = in_folder(|path| commit_latency(&open(path, synchronous)?))?;
            let ours = in_folder(|path| body_latency(Arc::new(open(path, synchronous)?)))?;
            report.line(&format!("sqlite_{name}_latency_p50"), ours.0, "µs", raw.0);
            report.line(&format!("sqlite_{name}_latency_p99"), ours.1, "µs", raw.1);
        }
    }
    Ok(())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn median(rounds: usize, run: impl Fn() -> Result<f64, Anything>) -> Result<f64, Anything> {
    (0..rounds).map(|_| run()).collect::<Result<Vec<_>, _>>().map(middle)
}

fn in_folder<T>(run: impl FnOnce(&Path) -> Result<T, Anything>) -> Result<T, Anything> {
    let folder = tempfile::tempdir()?;
    run(&folder.path().join("bench.db"))
}

fn open(path: &Path, synchronous: Synchronous) -> Result<SqliteStore, Anything> {
    Ok(SqliteStore::open(path, Options { synchronous, ..Options::default() })?)
}

/// The store without a controller: two commits for each batch of tasks, as a journal under load makes them.
fn store_rate(store: &dyn TaskStore) -> Result<f64, Anything> {
    let supervisor = IncarnationId::generate();
    let clock = SystemClock::default();
    let mut elapsed = Duration::ZERO;
    for start in (0..TASKS).step_by(BATCH) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for i in start..(start + BATCH).min(TASKS) {
            let at = clock.wall();
            let id = TaskId::new(format!("{i:032}"))?;
            let mut task = TaskSnapshot::pending(id, "noop", "host:1".into(), at);
            task.supervisor = Some(supervisor.clone());
            let rows = vec![
                machine::apply(&mut task, Status::Queued, Trigger::DependenciesResolved, at, None)?,
                machine::apply(&mut task, Status::Starting, Trigger::Dispatch, at, None)?,
            ];
            first.push(create(task.clone(), rows));
            let rows = vec![
                machine::apply(&mut task, Status::Running, Trigger::Launched, at, None)?,
                machine::apply(&mut task, Status::Succeeded, Trigger::Completed, at, None)?,
            ];
            second.push(save(task, 2, rows));
        }
        let since = Instant::now();
        let results = [store.write(&first)?, store.write(&second)?];
        elapsed += since.elapsed();
        if results.iter().flatten().any(Result::is_err) {
            return Err("the store refused a write".into());
        }
    }
    Ok(TASKS as f64 / elapsed.as_secs_f64())
}

fn create(snapshot: TaskSnapshot, transitions: Vec<Transition>) -> Entry {
    Entry::Create { snapshot: snapshot.into(), transitions }
}

fn save(snapshot: TaskSnapshot, expect_version: u64, transitions: Vec<Transition>) -> Entry {
    Entry::Save { snapshot: snapshot.into(), expect_version, transitions, if_expired: None }
}

/// The same tasks through the whole controller, from the first submission to the last stored end.
fn controller_rate(store: Arc<dyn TaskStore>) -> Result<f64, Anything> {
    let controller = Controller::builder()
        .store(Arc::clone(&store))
        .max_parallel(BATCH)
        .register(TaskDefinition::new("noop", |_: &TaskContext, ()| Ok::<_, TaskError>(())))
        .build()?;
    let next = AtomicUsize::new(0);
    let since = Instant::now();
    thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                loop {
                    let start = next.fetch_add(BATCH / SUBMITTERS, Ordering::Relaxed);
                    if start >= TASKS {
                        return;
                    }
                    let count = (BATCH / SUBMITTERS).min(TASKS - start);
                    let runs = controller.submit_many((0..count).map(|_| Submit::new("noop")));
                    assert!(runs.iter().all(Result::is_ok));
                }
            });
        }
    });
    controller.wait_all(None)?;
    let elapsed = since.elapsed();
    let stats = controller.stats()?;
    if stats.by_status.get(&Status::Succeeded) != Some(&(TASKS as u64))
        || stats.total != TASKS as u64
    {
        return Err(format!("not every task is stored as succeeded: {stats:?}").into());
    }
    Ok(TASKS as f64 / elapsed.as_secs_f64())
}

const SAMPLES: usize = 2000;
/// Between two samples, so that each finds an idle controller.
const PAUSE: Duration = Duration::from_micros(500);

/// Median and 99th percentile, in microseconds.
fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    (at(0.5), at(0.99))
}

/// One commit that creates a task with its first two audit rows.
fn commit_latency(store: &SqliteStore) -> Result<(f64, f64), Anything> {
    let clock = SystemClock::default();
    let mut times = Vec::new();
    for i in 0..SAMPLES {
        let at = clock.wall();
        let mut task =
            TaskSnapshot::pending(TaskId::new(format!("{i:032}"))?, "noop", "host:1".into(), at);
        let rows = vec![
            machine::apply(&mut task, Status::Queued, Trigger::DependenciesResolved, at, None)?,
            machine::apply(&mut task, Status::Starting, Trigger::Dispatch, at, None)?,
        ];
        let entry = [create(task, rows)];
        let since = Instant::now();
        store.write(&entry)?;
        times.push(since.elapsed());
        thread::sleep(PAUSE);
    }
    Ok(percentiles(times))
}

/// From the call of `submit` to the first line of the body, on an idle controller.
fn body_latency(store: Arc<dyn TaskStore>) -> Result<(f64, f64), Anything> {
    let (say, runs) = mpsc::channel();
    let body = move |_: &TaskContext, ()| {
        say.send(Instant::now())?;
        Ok::<_, TaskError>(())
    };
    let controller =
        Controller::builder().store(store).register(TaskDefinition::new("now", body)).build()?;
    let mut times = Vec::new();
    for _ in 0..SAMPLES {
        let since = Instant::now();
        controller.submit(Submit::new("now"))?;
        times.push(runs.recv()? - since);
        controller.wait_all(None)?;
        thread::sleep(PAUSE);
    }
    Ok(percentiles(times))
}
