//! Resident memory of waiting tasks: 100,000 of them behind one slot, on an SQLite store.
//!
//! Apart from the other figures because it runs on the system's allocator. The limit beside it is 1 KiB.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use chongming_core::store::{Entry, TaskStore};
use chongming_core::{
    Controller, Status, Submit, TaskContext, TaskDefinition, TaskError, TaskId, TaskSnapshot,
    Timestamp, Trigger, machine,
};
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};

#[path = "support/report.rs"]
mod report;

use report::Report;

type Anything = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    if std::env::args().any(|arg| arg == RAW) {
        println!("{}", stored_memory()?);
    } else if report.wants("queued_memory") {
        // In a process of its own, since memory that was given back once is not seen to grow again.
        let raw = Command::new(std::env::current_exe()?).arg(RAW).output()?;
        let raw: f64 = String::from_utf8(raw.stdout)?.trim().parse()?;
        report.line("queued_memory", queued_memory()? - raw, "bytes/task", 1024.0);
    }
    Ok(())
}

/// Asks for what the same rows cost in the store alone: its caches are not the controller's.
const RAW: &str = "--raw";
const WAITING: usize = 100_000;
const CHUNK: usize = 1000;

fn open(folder: &Path) -> Result<SqliteStore, Anything> {
    let options = Options { synchronous: Synchronous::Normal, ..Options::default() };
    Ok(SqliteStore::open(folder.join("bench.db"), options)?)
}

/// Resident memory that each of the same rows adds, written to the store without a controller.
fn stored_memory() -> Result<f64, Anything> {
    let folder = tempfile::tempdir()?;
    let store = open(folder.path())?;
    let before = resident()?;
    for start in (0..WAITING).step_by(CHUNK) {
        let mut entries = Vec::with_capacity(CHUNK);
        for i in start..start + CHUNK {
            let (id, at) = (TaskId::new(format!("{i:032}"))?, Timestamp::from_micros(0));
            let mut snapshot = TaskSnapshot::pending(id, "noop", "host:1".into(), at);
            let trigger = Trigger::DependenciesResolved;
            let row = machine::apply(&mut snapshot, Status::Queued, trigger, at, None)?;
            entries.push(Entry::Create { snapshot: snapshot.into(), transitions: vec![row] });
        }
        store.write(&entries)?;
    }
    Ok(resident()?.saturating_sub(before) as f64 / WAITING as f64)
}

/// Resident memory that each waiting task adds, its handle included.
fn queued_memory() -> Result<f64, Anything> {
    let folder = tempfile::tempdir()?;
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let block = move |_: &TaskContext, ()| {
        // Ends when the other end of the channel goes.
        let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        Ok::<_, TaskError>(())
    };
    let controller = Controller::builder()
        .store(Arc::new(open(folder.path())?))
        .max_parallel(1)
        .register(TaskDefinition::new("block", block))
        .register(TaskDefinition::new("noop", |_: &TaskContext, ()| Ok::<_, TaskError>(())))
        .build()?;
    controller.submit(Submit::new("block"))?;
    let before = resident()?;
    let mut runs = Vec::with_capacity(WAITING);
    for _ in 0..WAITING / CHUNK {
        runs.extend(controller.submit_many((0..CHUNK).map(|_| Submit::new("noop"))));
    }
    let added = resident()?.saturating_sub(before);
    drop(release);
    drop(runs);
    controller.wait_all(None)?;
    Ok(added as f64 / WAITING as f64)
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<u64, Anything> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
