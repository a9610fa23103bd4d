//! An embedding program: a node with tasks of its own on threads, as somebody's service would have it.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chongming_core::{
    Backoff, Clock, CloseMode, Controller, ReconcileOutcome, RetryPolicy, Submit, SystemClock,
    TaskContext, TaskDefinition, TaskError, TaskId, Timestamp,
};

use crate::history::Micros;
use crate::marks::{AtWork, now};
use crate::random::Random;
use crate::store::Database;

/// The name of its tasks.
pub(crate) const TASK: &str = "thread";
/// The file that tells it to end.
pub(crate) const STOP: &str = "stop";
/// So many of its tasks are unfinished at most.
const MOST: usize = 12;
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

thread_local! {
    static CHECKED: Cell<Option<Micros>> = const { Cell::new(None) };
}

/// Remembers when each thread last read it. Directly before a body begins, its thread reads it to find out
/// whether it may: so the body can say when that was.
#[derive(Default)]
struct Remembering(SystemClock);

impl Clock for Remembering {
    fn wall(&self) -> Timestamp {
        self.0.wall()
    }

    fn monotonic(&self) -> Duration {
        CHECKED.set(Some(now()));
        self.0.monotonic()
    }
}

/// What a node is told.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) folder: PathBuf,
    pub(crate) number: u32,
    pub(crate) database: Database,
    pub(crate) lease: Duration,
    pub(crate) seed: u64,
}

/// Runs until it is told to end.
pub(crate) fn run(orders: Orders) -> Result<(), String> {
    let Orders { folder, number, database, lease, seed } = orders;
    let store = database.open()?;
    let place = folder.clone();
    let definition =
        TaskDefinition::new(TASK, move |ctx: &TaskContext, ms: u32| body(ctx, &place, number, ms));
    let backoff = Backoff::Fixed(Duration::from_millis(300));
    let retry = RetryPolicy::attempts(3).with_backoff(backoff);
    let controller = Controller::builder()
        .store(store)
        .register(definition.retry(retry))
        .owner(format!("node-{number}"))
        .max_parallel(4)
        .grace(Duration::from_secs(5))
        .lease_ttl(lease)
        .clock(Arc::new(Remembering::default()))
        .build()
        .map_err(|error| error.to_string())?;
    // What an earlier life, or another node, left behind.
    let found = controller.reconcile(false, Some("a node starts")).unwrap_or_default();
    let mut runs = Vec::new();
    for orphan in found.into_iter().filter(|found| found.outcome == ReconcileOutcome::Adoptable) {
        let submit = Submit::new(TASK).id(orphan.task_id).args(50u32);
        runs.extend(controller.submit(submit));
    }
    let mut random = Random::new(seed);
    let mut next = 0;
    while !folder.join(STOP).exists() {
        runs.retain(|run| run.outcome().is_none());
        if runs.len() < MOST {
            let id = TaskId::new(format!("n{number}-{next}")).map_err(|error| error.to_string())?;
            next += 1;
            let ms = random.within(0, 800) as u32;
            runs.extend(controller.submit(Submit::new(TASK).id(id).args(ms)));
        }
        std::thread::sleep(Duration::from_millis(random.within(1, 60)));
    }
    controller.close(CloseMode::Wait, CLOSE_LIMIT, true);
    Ok(())
}

fn body(
    ctx: &TaskContext,
    folder: &std::path::Path,
    number: u32,
    ms: u32,
) -> Result<(), TaskError> {
    let failed = |error: std::io::Error| TaskError::new(error.to_string());
    let id = ctx.task_id().as_str();
    let at_work =
        AtWork::begin(folder, id, ctx.attempt(), number, CHECKED.get()).map_err(failed)?;
    let interrupted = ctx.sleep(Duration::from_millis(ms.into())).err();
    let fails = interrupted.is_none() && ms.is_multiple_of(5) && ctx.attempt() == 1;
    at_work.end(interrupted.is_none() && !fails).map_err(failed)?;
    match interrupted {
        Some(error) => Err(error),
        None if fails => Err(TaskError::new("as planned")),
        None => Ok(()),
    }
}
