//! The controller: the one place with threads and a clock (spec 8).
//!
//! Four kinds of threads, however many tasks wait: callers, the *writer* (journal to store), the *ticker*
//! (time-outs), the *node* (lease, commands). All of them meet in `engine`.

mod batch;
mod builder;
mod close;
mod control;
mod engine;
mod faults;
mod guarded;
mod handle;
mod inbox;
mod intake;
mod journal;
mod lease;
mod node;
mod orchestration;
mod run;
mod run_task;
mod submit;
mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub use builder::{ConfigurationError, ControllerBuilder, host_name, resolve_num_buckets};
pub use close::{CloseMode, Closed};
pub use control::ControlError;
pub use faults::PersistFailure;
pub use handle::{Outcome, WaitTimedOut};
pub use lease::MAY_BEGIN_GOOD_FOR;
pub use orchestration::Release;
pub use run::TaskRun;
pub use run_task::{RunError, run_task};
pub use submit::{NotAdoptable, Submit, SubmitError};

use engine::Engine;
use guarded::Core;

use crate::doctor::{Alert, examine_node};
use crate::id::{IncarnationId, TaskId};
use crate::ownership::Ownership;
use crate::recovery::{Reconciled, reconcile};
use crate::scheduler::{EndCause, Explanation};
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::store::{StoreError, TaskFilter, TaskPage, TaskQuery};
use crate::task::{RegistryError, TaskDefinition};
use crate::transition::Transition;

/// Runs tasks, and tells the truth about them. Cheap to clone; the last one to go closes it.
///
/// ```
/// # use chongming_core::{Controller, Submit, TaskContext, TaskDefinition, TaskError, Value};
/// let controller = Controller::builder()
///     .register(TaskDefinition::new("double", |_: &TaskContext, n: i64| {
///         Ok::<i64, TaskError>(2 * n)
///     }))
///     .build()?;
/// let outcome = controller.submit(Submit::new("double").args(21i64))?.wait(None)?;
/// assert!(outcome.ok() && *outcome.value() == Value::Int(42));
/// assert_eq!(controller.history(&outcome.snapshot.id)?.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Controller {
    engine: Arc<Engine>,
    life: Arc<Life>,
}

/// Closes the controller when the last handle goes.
struct Life {
    engine: Arc<Engine>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
}

/// How long a controller that is dropped without a close may take to stop its tasks.
const DROP_LIMIT: Duration = Duration::from_secs(5);

impl Drop for Life {
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some() {
            self.engine.close(CloseMode::Stop, DROP_LIMIT, false, writer);
        }
    }
}

/// How many tasks there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// In all.
    pub total: u64,
    /// In each state that has any.
    pub by_status: BTreeMap<Status, u64>,
}

impl Controller {
    /// Starts to set one up.
    #[must_use]
    pub fn builder() -> ControllerBuilder {
        ControllerBuilder::default()
    }

    fn started(engine: Arc<Engine>, writer: thread::JoinHandle<()>) -> Self {
        let life = Life { engine: Arc::clone(&engine), writer: Mutex::new(Some(writer)) };
        Self { engine, life: Arc::new(life) }
    }

    /// Adds a definition.
    ///
    /// # Errors
    /// [`RegistryError`]: the name is invalid or taken.
    pub fn register(&self, definition: TaskDefinition) -> Result<(), RegistryError> {
        self.engine.registry.write().unwrap_or_else(PoisonError::into_inner).register(definition)
    }

    /// The names that can be submitted, with their definitions.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<TaskDefinition>> {
        let registry = self.engine.registry.read().unwrap_or_else(PoisonError::into_inner);
        registry.iter().cloned().collect()
    }

    /// A task as the store knows it, whoever holds it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.engine.store.get(id)
    }

    /// A page of tasks, whoever holds them.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn list_tasks(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        self.engine.store.query(query)
    }

    /// How many tasks there are, whoever holds them.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        for count in self.engine.store.count(&TaskFilter::default())? {
            stats.total += count.tasks;
            *stats.by_status.entry(count.status).or_default() += count.tasks;
        }
        Ok(stats)
    }

    /// The whole trail of a task.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn history(&self, id: &TaskId) -> Result<Vec<Transition>, StoreError> {
        const PAGE: usize = 1000;
        let mut rows = Vec::new();
        loop {
            let after = rows.last().map_or(0, |row: &Transition| row.version);
            let page = self.engine.store.history(id, after, PAGE)?;
            let is_last = page.len() < PAGE;
            rows.extend(page);
            if is_last {
                return Ok(rows);
            }
        }
    }

    /// What a task that this controller holds waits for; `None` for any other.
    #[must_use]
    pub fn explain(&self, id: &TaskId) -> Option<Explanation> {
        self.engine.with(|core, now| {
            let key = core.scheduler.key(id)?;
            core.explain(key, now.mono)
        })
    }

    /// Asks every task of this controller to stop; says how many requests were sent.
    pub fn stop_all(&self, reason: Option<&str>) -> usize {
        self.engine.stop_all(EndCause::Stop, reason)
    }

    /// Waits until no task is left; without a time, as long as it takes.
    ///
    /// # Errors
    /// [`WaitTimedOut`]: the time ran out; no task is affected.
    pub fn wait_all(&self, timeout: Option<Duration>) -> Result<(), WaitTimedOut> {
        if self.engine.await_empty(timeout) { Ok(()) } else { Err(WaitTimedOut) }
    }

    /// After a crash: what is lost, what can be taken over, in the buckets that this node owns. Never
    /// runs anything (spec 12).
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read or written.
    pub fn reconcile(
        &self,
        dry_run: bool,
        reason: Option<&str>,
    ) -> Result<Vec<Reconciled>, StoreError> {
        let Engine { store, ownership, clock, .. } = &*self.engine;
        reconcile(&**store, ownership, dry_run, reason, &**clock)
    }

    /// What the other living nodes declare against this one, right now: buckets that two claim, one owner's
    /// name for two processes, another bucket count. To be asked once the controller is a node (from
    /// [`build`](ControllerBuilder::build) on where it declares buckets, else from its first submission),
    /// and to be told to a person: nothing is refused because of it. What is wrong elsewhere, too, says
    /// [`examine`](crate::examine).
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn alerts(&self) -> Result<Vec<Alert>, StoreError> {
        examine_node(&*self.engine.store, self.engine.incarnation())
    }

    /// Faults of the store, oldest first: what could not be written when it should have been.
    #[must_use]
    pub fn persist_failures(&self) -> Vec<PersistFailure> {
        self.engine.lock().journal.faults.iter().cloned().collect()
    }

    /// How many tasks have something that is not written yet.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.engine.lock().journal.unwritten()
    }

    /// Tasks that somebody else writes by now: this controller has stopped writing and running them.
    #[must_use]
    pub fn desynced_tasks(&self) -> Vec<TaskId> {
        self.engine.lock().desynced.clone()
    }

    /// Which buckets are this node's; also answers `owns_bucket` and `owns_all_buckets`.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.engine.ownership
    }

    /// This life of this controller.
    #[must_use]
    pub fn incarnation(&self) -> &IncarnationId {
        self.engine.incarnation()
    }

    /// Ends it: no more intake, then the tasks (waited for or stopped, as a shutdown and not as a
    /// person), then what is unwritten, then the lease, and the store if asked to. Takes no longer than
    /// `limit`. A second close does nothing.
    pub fn close(&self, mode: CloseMode, limit: Duration, close_store: bool) -> Closed {
        let writer = self.life.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match writer {
            Some(writer) => self.engine.close(mode, limit, close_store, Some(writer)),
            None => Closed { unfinished: 0, unwritten: 0 },
        }
    }
}
