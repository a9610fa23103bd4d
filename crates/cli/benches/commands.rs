//! What running external commands costs, through controller, SQLite and process executor: commands per second,
//! two and eight at once, beside bare `posix_spawn` + wait + one commit, and memory for each that runs.
//!
//! `--json` prints one object a line.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    Clock, CloseMode, Controller, IncarnationId, Status, Submit, SystemClock, TaskDefinition,
    TaskId, TaskSnapshot, Trigger, machine,
};
use chongming_executor_process::{Command, ProcessExecutor, init};
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};

const COMMANDS: usize = 3000;
const ROUNDS: usize = 3;
/// How many run at once when their memory is measured.
const HELD: usize = 200;

#[path = "../../store-sqlite/benches/support/report.rs"]
mod report;

use report::Report;

type Anything = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    init();
    let report = Report::from_args();
    for (name, at_once, adopts) in [
        ("external_commands", 2, false),
        ("external_commands_8_at_once", 8, false),
        ("external_commands_adopting", 2, true),
    ] {
        if report.wants(name) {
            let (mut raw, mut ours) = (vec![], vec![]);
            for _ in 0..ROUNDS {
                raw.push(in_folder(|path| raw_rate(path, at_once))?);
                ours.push(in_folder(|path| controller_rate(path, at_once, adopts))?);
            }
            report.line(name, middle(ours), "cmds/s", middle(raw));
        }
    }
    if report.wants("external_command_memory") {
        let raw = raw_memory()?;
        let ours = in_folder(controller_memory)?;
        report.line("external_command_memory", ours, "KiB each", raw);
    }
    Ok(())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn in_folder<T>(run: impl FnOnce(&Path) -> Result<T, Anything>) -> Result<T, Anything> {
    let folder = tempfile::tempdir()?;
    run(&folder.path().join("bench.db"))
}

fn open(path: &Path) -> Result<SqliteStore, Anything> {
    Ok(SqliteStore::open(path, Options { synchronous: Synchronous::Normal, ..Options::default() })?)
}

/// A child with captured output, in a group of its own.
fn spawn(argv: &[&str]) -> Result<Child, Anything> {
    let (program, arguments) = argv.split_first().ok_or("no program")?;
    let mut command = std::process::Command::new(program);
    command.args(arguments).process_group(0).stdin(Stdio::null());
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// Spawn, wait, and one commit of the task with its trail, on as many threads as run at once.
fn raw_rate(path: &Path, at_once: usize) -> Result<f64, Anything> {
    let store = open(path)?;
    let supervisor = IncarnationId::generate();
    let next = AtomicUsize::new(0);
    let since = Instant::now();
    let one = |number: usize| -> Result<(), Anything> {
        spawn(&["/bin/true"])?.wait_with_output()?;
        let at = SystemClock::default().wall();
        let id = TaskId::new(format!("{number:032}"))?;
        let mut task = TaskSnapshot::pending(id, "true", "host:1".into(), at);
        task.supervisor = Some(supervisor.clone());
        let mut transitions = Vec::new();
        for (to, trigger) in [
            (Status::Queued, Trigger::DependenciesResolved),
            (Status::Starting, Trigger::Dispatch),
            (Status::Running, Trigger::Launched),
            (Status::Succeeded, Trigger::Completed),
        ] {
            transitions.push(machine::apply(&mut task, to, trigger, at, None)?);
        }
        let written = store.write(&[Entry::Create { snapshot: task.into(), transitions }])?;
        if written.iter().any(Result::is_err) {
            return Err("the raw loop was refused a write".into());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let work = || -> Result<(), Anything> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= COMMANDS {
                    return Ok(());
                }
                one(number)?;
            }
        };
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread of the raw loop panicked".into()))
        })
    })?;
    Ok(COMMANDS as f64 / since.elapsed().as_secs_f64())
}

fn controller(
    path: &Path,
    slots: usize,
    argv: &[&str],
    adopts: bool,
) -> Result<Controller, Anything> {
    let mut executor = ProcessExecutor::builder();
    if adopts {
        executor = executor.adopt_orphans();
    }
    let target = Command::new(argv.iter().copied()).into_target();
    Ok(Controller::builder()
        .store(Arc::new(open(path)?))
        .executor(Arc::new(executor.build()?))
        .max_parallel(slots)
        .register(TaskDefinition::external("command", target))
        .build()?)
}

fn controller_rate(path: &Path, at_once: usize, adopts: bool) -> Result<f64, Anything> {
    let controller = controller(path, at_once, &["/bin/true"], adopts)?;
    let since = Instant::now();
    let runs = controller.submit_many((0..COMMANDS).map(|_| Submit::new("command")));
    assert!(runs.iter().all(Result::is_ok));
    controller.wait_all(None)?;
    let elapsed = since.elapsed();
    let stats = controller.stats()?;
    if stats.by_status.get(&Status::Succeeded) != Some(&(COMMANDS as u64)) {
        return Err(format!("not every command succeeded: {stats:?}").into());
    }
    Ok(COMMANDS as f64 / elapsed.as_secs_f64())
}

/// This process's own memory, in KiB.
fn resident() -> Result<f64, Anything> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()).ok_or("no RssAnon")?;
    Ok(number.parse()?)
}

fn raw_memory() -> Result<f64, Anything> {
    let before = resident()?;
    let mut children =
        (0..HELD).map(|_| spawn(&["/bin/sleep", "1000"])).collect::<Result<Vec<_>, _>>()?;
    let each = (resident()? - before) / HELD as f64;
    for child in &mut children {
        child.kill()?;
        child.wait()?;
    }
    Ok(each.max(0.1))
}

fn controller_memory(path: &Path) -> Result<f64, Anything> {
    let controller = controller(path, HELD, &["/bin/sleep", "1000"], false)?;
    let before = resident()?;
    let runs = controller.submit_many((0..HELD).map(|_| Submit::new("command")));
    let running = || -> Result<bool, Anything> {
        let stats = controller.stats()?;
        Ok(stats.by_status.get(&Status::Running) == Some(&(HELD as u64)))
    };
    while !running()? {
        thread::yield_now();
    }
    let each = (resident()? - before) / HELD as f64;
    drop(runs);
    controller.close(CloseMode::Stop, Duration::from_secs(30), true);
    Ok(each)
}
