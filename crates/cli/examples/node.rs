//! A whole autonomous node, to be copied: it owns a share of the buckets, tells the truth about what its
//! predecessor left behind, runs its own tasks, is seen and controlled from other processes, and ends in good
//! order. Two of them share the work of all tenants:
//!
//! ```sh
//! cargo run --example node -- --db tasks.db --node 0 --of 2 tenant-A tenant-B tenant-C
//! cargo run --example node -- --db tasks.db --node 1 --of 2 tenant-A tenant-B tenant-C
//! chongming-task --db tasks.db ps --watch
//! chongming-task --db tasks.db stop sync-tenant-A --reason "release window" --wait 10s
//! ```
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use chongming_core::store::{StoreError, TaskStore};
use chongming_core::{
    Actor, Backoff, CloseMode, Controller, LogLevel, NotAdoptable, ReconcileOutcome, RetryPolicy,
    Submit, SubmitError, TaskContext, TaskDefinition, TaskError, TaskId, TaskRun, Timeout,
    bucket_of, buckets_for_node, resolve_num_buckets,
};
use chongming_store_postgres::PostgresStore;
use chongming_store_sqlite::SqliteStore;
use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// One node of several.
#[derive(Parser)]
struct Args {
    /// The store that all nodes share: an SQLite file, or postgresql://user@host/database
    #[arg(long)]
    db: String,
    /// Which of the nodes this is, from 0 on
    #[arg(long)]
    node: u32,
    /// How many nodes there are
    #[arg(long)]
    of: u32,
    /// How many pages each tenant has
    #[arg(long, default_value_t = 10)]
    pages: u32,
    /// Seconds after which this node counts as dead, when it falls silent
    #[arg(long, default_value_t = 30)]
    lease: u64,
    /// Whose data is synchronised, each in the bucket of its name
    tenants: Vec<String>,
}

/// What a node can do. The code lies here, in the node; the store never sees more than the name.
fn definitions(pages: u32) -> [TaskDefinition; 1] {
    let sync = move |ctx: &TaskContext, tenant: String| -> Result<u32, TaskError> {
        ctx.log(LogLevel::Info, &format!("attempt {} for {tenant}", ctx.attempt()))?;
        for page in 0..pages {
            ctx.sleep(Duration::from_millis(20))?; // the work; it stops and pauses here
            ctx.progress(f64::from(page + 1)).total(f64::from(pages)).unit("pages").report();
        }
        Ok(pages)
    };
    let backoff = Backoff::Exponential {
        base: Duration::from_secs(1),
        factor: 2.0,
        max: Duration::from_secs(60),
        jitter: 0.2,
    };
    let timeout = Timeout { idle: Some(Duration::from_secs(60)), ..Timeout::default() };
    let sync = TaskDefinition::new("sync", sync).tag("io");
    [sync.retry(RetryPolicy::attempts(3).with_backoff(backoff)).timeout(timeout)]
}

fn open(db: &str) -> Result<Arc<dyn TaskStore>, StoreError> {
    if db.starts_with("postgresql://") || db.starts_with("postgres://") {
        let options = chongming_store_postgres::Options::default();
        return Ok(Arc::new(PostgresStore::connect(db, options)?));
    }
    let options = chongming_store_sqlite::Options::default();
    Ok(Arc::new(SqliteStore::open(Path::new(db), options)?))
}

/// What the main thread waits for.
enum Event {
    /// Some task has ended.
    Ended,
    /// This process is to end.
    ShutDown,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let store = open(&args.db)?;
    let num_buckets = resolve_num_buckets(&*store, None)?;
    let lease = Duration::from_secs(args.lease);
    let mut builder = Controller::builder()
        .store(store)
        .owner(format!("node-{}", args.node))
        .owned_buckets(buckets_for_node(args.node, args.of, num_buckets))
        .max_parallel(8)
        .max_parallel_per_bucket(1)
        .artifacts(std::path::absolute("artifacts")?)
        .lease_ttl(lease);
    for definition in definitions(args.pages) {
        builder = builder.register(definition);
    }
    let controller = builder.build()?;
    if let Some(owned) = controller.ownership().declared() {
        println!("node-{} owns buckets {owned} of {num_buckets}", args.node);
    }
    // Another living node claims the same: nothing stops that, so a person has to know.
    for alert in controller.alerts()? {
        eprintln!("warning: {alert}");
    }

    let (tell, events) = mpsc::channel();
    listen(tell.clone())?;
    let mut wanted = jobs(args, &controller)?;
    let mut runs: Vec<TaskRun> = Vec::new();
    loop {
        // A node that crashed a moment ago still has its lease, so what it left behind shows only later.
        reconcile(&controller)?;
        let mut later = Vec::new();
        for job in wanted {
            match controller.submit(job.clone()) {
                Ok(run) => {
                    println!("{} accepted", run.id());
                    observe(&run, tell.clone())?;
                    runs.push(run);
                }
                // Our predecessor has it, for as long as its lease lasts.
                Err(SubmitError::Exists {
                    why: NotAdoptable::HolderLives | NotAdoptable::InFlight(_),
                    ..
                }) => later.push(job),
                Err(SubmitError::Exists { id, why: NotAdoptable::Ended(status) }) => {
                    println!("{id} was {status} before");
                }
                Err(error) => return Err(error.into()),
            }
        }
        wanted = later;
        if wanted.is_empty() && runs.is_empty() {
            break;
        }
        match events.recv_timeout(lease / 2) {
            Ok(Event::Ended) => tell_ends(&controller, &mut runs)?,
            Ok(Event::ShutDown) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    // Tasks are stopped (as a shutdown, not by a person), everything is written, the lease is given back.
    let closed = controller.close(CloseMode::Stop, Duration::from_secs(30), false);
    tell_ends(&controller, &mut runs)?;
    for fault in controller.persist_failures() {
        eprintln!("warning: a write failed at {}: {}", fault.at, fault.error);
    }
    println!(
        "node-{} ends: {} unfinished, {} unwritten",
        args.node, closed.unfinished, closed.unwritten
    );
    Ok(())
}

/// One task for each tenant in our buckets. The id names the work, so it is done once, whoever asks for it again;
/// and what our predecessor left waiting is taken over by asking again.
fn jobs(args: &Args, controller: &Controller) -> Result<Vec<Submit>, Box<dyn Error>> {
    let ownership = controller.ownership();
    let ours = |tenant: &&String| ownership.owns_bucket(bucket_of(tenant, ownership.num_buckets()));
    let job = |tenant: &String| {
        let id = TaskId::new(format!("sync-{tenant}"))?;
        Ok(Submit::new("sync").id(id).bucket_key(tenant.as_str()).args(tenant.as_str()))
    };
    args.tenants.iter().filter(ours).map(job).collect()
}

/// What dead nodes have left in our buckets: what was running is `lost` from now on, and it is for us to decide
/// what that means. Nothing is run again by itself.
fn reconcile(controller: &Controller) -> Result<(), StoreError> {
    for found in controller.reconcile(false, Some("found by the node on its buckets"))? {
        match found.outcome {
            ReconcileOutcome::MarkedLost => println!("{} is lost: {}", found.task_id, found.detail),
            ReconcileOutcome::Adoptable | ReconcileOutcome::Conflict => {}
        }
    }
    Ok(())
}

/// Has the main thread woken when the task ends.
fn observe(run: &TaskRun, tell: Sender<Event>) -> std::io::Result<()> {
    let run = run.clone();
    let wait = move || {
        let ended = run.wait(None);
        // Nobody listens any more when the node has ended.
        drop(ended.map(|_| tell.send(Event::Ended)));
    };
    thread::Builder::new().spawn(wait).map(drop)
}

fn tell_ends(controller: &Controller, runs: &mut Vec<TaskRun>) -> Result<(), StoreError> {
    let mut open = Vec::new();
    for run in runs.drain(..) {
        let Some(outcome) = run.outcome() else {
            open.push(run);
            continue;
        };
        // The trail says what a person did to it, and why; `value` and `failure` are in the outcome.
        let trail = controller.history(run.id())?;
        let mut acts = trail.iter().rev().filter(|row| row.actor() == Actor::User);
        let end = acts.find_map(|row| Some((row.trigger, row.reason.as_ref()?)));
        match end {
            Some((trigger, why)) => {
                println!("{} {}, {trigger}: {why}", run.id(), outcome.status());
            }
            None => println!("{} {}", run.id(), outcome.status()),
        }
    }
    *runs = open;
    Ok(())
}

/// Has the main thread woken when this process is to end.
fn listen(tell: Sender<Event>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        for _ in signals.forever() {
            drop(tell.send(Event::ShutDown));
        }
    };
    thread::Builder::new().spawn(wait).map(drop)
}
