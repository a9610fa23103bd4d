//! The controller: the one place with threads and a clock (spec 8).
//!
//! Four kinds of threads, however many tasks wait: callers, the *writer* (journal to store), the *ticker*
//! (time-outs), the *node* (lease, commands). All of them meet in `engine`.

mod builder;
mod close;
mod engine;
mod handle;
mod inbox;
mod journal;
mod node;
mod orchestration;
mod run;
mod submit;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub use builder::{ConfigurationError, ControllerBuilder, host_name, resolve_num_buckets};
pub use close::{CloseMode, Closed};
pub use handle::{Outcome, WaitTimedOut};
pub use journal::PersistFailure;
pub use orchestration::Release;
pub use run::TaskRun;
pub use submit::{NotAdoptable, Submit, SubmitError};

use builder::check_num_buckets;
use engine::{Asker, Core, Engine, Payload, Slot};
use handle::Completion;
use node::DEFAULT_PAUSE_LIMIT;
use submit::{Work, adoptable};

use crate::control::{Answer, ControlClient, ControlRefusal, Sent};
use crate::id::{IncarnationId, TaskId};
use crate::ownership::Ownership;
use crate::recovery::{Reconciled, reconcile};
use crate::scheduler::{EndCause, Entrance, Explanation, Refused, Reply, Request, Submission};
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::store::{
    CommandKind, FACT_NUM_BUCKETS, Now, Receipt, ReceiptKind, StoreError, TaskFilter, TaskPage,
    TaskQuery,
};
use crate::task::{RegistryError, TaskDefinition};
use crate::text::clean;
use crate::time::Moment;
use crate::transition::Transition;
use crate::value::{IntoValue, Value};

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

/// How many submissions are handed over under one lock: others want it too.
const SUBMIT_CHUNK: usize = 64;

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

/// Why a task could not be controlled.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// Not possible; nothing changed.
    Refused(ControlRefusal),
    /// The store cannot be read or written.
    Store(StoreError),
    /// The holder did not answer.
    NoAnswer,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::NoAnswer => f.write_str("the task's holder did not answer"),
        }
    }
}

impl std::error::Error for ControlError {}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refused> for ControlError {
    fn from(refused: Refused) -> Self {
        Self::Refused(match refused {
            Refused::Unknown => ControlRefusal::NotFound,
            Refused::Ended(status) => ControlRefusal::Ended(status),
            Refused::NotNow(status) => ControlRefusal::NotNow(status),
        })
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

/// What the checks of a submission found out.
struct Inspected {
    definition: Arc<TaskDefinition>,
    args: Value,
    bucket: Option<u32>,
}

/// A submission that passed every check that needs no lock.
struct Checked {
    submission: Submission<Payload>,
    completion: Arc<Completion>,
    submit: Submit,
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

    /// Takes a task in. On return it is in the store (or recorded as not written).
    ///
    /// An id that exists is an error, unless that task's holder is gone and nothing of it was running:
    /// then the submission takes it over.
    ///
    /// # Errors
    /// [`SubmitError`] says what does not fit; nothing was taken in.
    pub fn submit(&self, submit: Submit) -> Result<TaskRun, SubmitError> {
        let mut results = self.submit_many([submit]);
        results.pop().unwrap_or(Err(SubmitError::Closed))
    }

    /// Takes many tasks in, each by itself; one result for each, in order.
    pub fn submit_many(
        &self,
        submits: impl IntoIterator<Item = Submit>,
    ) -> Vec<Result<TaskRun, SubmitError>> {
        self.engine.become_node();
        let checked: Vec<_> = submits.into_iter().map(|submit| self.check(submit)).collect();
        let mut checked = checked.into_iter();
        let mut taken = Vec::with_capacity(checked.len());
        while checked.len() > 0 {
            self.engine.with(|core, now| {
                let chunk = checked.by_ref().take(SUBMIT_CHUNK);
                taken.extend(chunk.map(|checked| self.take(core, checked?, now)));
            });
        }
        let finish = |taken: Result<(TaskRun, Submit), SubmitError>| {
            let (run, submit) = taken?;
            match run.completion.wait_accepted() {
                Ok(()) => Ok(run),
                Err(SubmitError::Exists { id, .. }) if submit.only_new => {
                    Err(SubmitError::Exists { id, why: NotAdoptable::OnlyNew })
                }
                Err(SubmitError::Exists { .. }) => self.adopt(submit, run.id),
                Err(error) => Err(error),
            }
        };
        // They are written in order, so the last one is waited for first: one wake instead of many.
        if let Some(Ok((last, _))) = taken.last() {
            let _ = last.completion.wait_accepted();
        }
        taken.into_iter().map(finish).collect()
    }

    /// Hands a checked submission to the scheduler.
    fn take(
        &self,
        core: &mut Core,
        checked: Checked,
        now: Moment,
    ) -> Result<(TaskRun, Submit), SubmitError> {
        let Checked { submission, completion, submit } = checked;
        if !core.is_open {
            return Err(SubmitError::Closed);
        }
        let id = submission.snapshot.id.clone();
        match core.scheduler.submit(submission, now, &mut core.out) {
            Ok(key) => {
                core.journal.open(key, id.clone(), None);
                Ok((TaskRun { controller: self.clone(), key, id, completion }, submit))
            }
            Err(_) => Err(SubmitError::Exists { id, why: NotAdoptable::Ours }),
        }
    }

    /// Everything about a submission that can be checked without changing anything.
    fn inspect(&self, submit: &Submit) -> Result<Inspected, SubmitError> {
        let engine = &*self.engine;
        let definition = {
            let registry = engine.registry.read().unwrap_or_else(PoisonError::into_inner);
            registry.get(&submit.name).cloned().ok_or_else(|| SubmitError::UnknownTask {
                name: submit.name.clone(),
                known: registry.iter().map(|known| Arc::clone(&known.name)).collect(),
            })?
        };
        engine.executor.check(&definition.target).map_err(SubmitError::Unsupported)?;
        submit.check()?;
        let args = submit.args.clone().map_err(SubmitError::Args)?;
        args.check().map_err(SubmitError::Args)?;
        let bucket = engine.ownership.place(submit.bucket_key.as_deref())?;
        Ok(Inspected { definition, args, bucket })
    }

    /// Everything about a submission that can be checked without the lock.
    fn check(&self, submit: Submit) -> Result<Checked, SubmitError> {
        let engine = &*self.engine;
        let Inspected { definition, args, bucket } = self.inspect(&submit)?;
        if bucket.is_some() {
            self.pin_num_buckets()?;
        }
        let id = submit.id.clone().unwrap_or_else(TaskId::generate);
        let at = engine.clock.wall();
        let name = Arc::clone(&definition.name);
        let mut snapshot = TaskSnapshot::pending(id, name, engine.node.owner.clone(), at);
        let policy = engine.policy(&submit, &definition);
        snapshot.max_attempts = policy.retry.max_attempts.get();
        snapshot.label = submit.label.clone();
        snapshot.bucket = bucket;
        snapshot.bucket_key = submit.bucket_key.clone();
        snapshot.tags = submit.all_tags(&definition);
        snapshot.priority = submit.priority.unwrap_or(definition.defaults.priority);
        snapshot.supervisor = Some(engine.incarnation().clone());
        let completion = Arc::new(Completion::default());
        let upstream = Arc::clone(&submit.upstream);
        let waits_for = Arc::clone(&submit.waits_for);
        let target = definition.target.clone();
        let work = Work { target, args: Ok(args), upstream, waits_for };
        let payload = Payload::new(work, Arc::clone(&completion));
        let entrance = if submit.blocked { Entrance::Blocked } else { Entrance::Queued };
        let submission = Submission { snapshot, policy, entrance, payload };
        Ok(Checked { submission, completion, submit })
    }

    /// The first bucketed submission records the store's bucket count (spec 3).
    fn pin_num_buckets(&self) -> Result<(), SubmitError> {
        let engine = &*self.engine;
        let ours = engine.ownership.num_buckets();
        if !engine.is_pinned.load(Ordering::Acquire) {
            let stored = engine.store.pin(FACT_NUM_BUCKETS, &ours.to_string())?;
            check_num_buckets(&stored, Some(ours))
                .map_err(|e| SubmitError::NumBuckets(Arc::new(e)))?;
            engine.is_pinned.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The id is in the store: takes the task over, if nobody holds it and nothing of it was running.
    fn adopt(&self, submit: Submit, id: TaskId) -> Result<TaskRun, SubmitError> {
        let refuse = |why| Err(SubmitError::Exists { id: id.clone(), why });
        let Checked { mut submission, completion, .. } =
            self.check(Submit { id: Some(id.clone()), ..submit })?;
        let Some(stored) = self.engine.store.get(&id)? else { return refuse(NotAdoptable::Raced) };
        let holder_lives = self.client().has_live_holder(&stored)?;
        let fresh = submission.snapshot;
        if let Err(why) = adoptable(&stored, &fresh.name, fresh.bucket, holder_lives) {
            return refuse(why);
        }
        let version = stored.status_version();
        submission.snapshot = TaskSnapshot {
            label: fresh.label,
            max_attempts: fresh.max_attempts.max(stored.attempt + 1),
            tags: fresh.tags,
            priority: fresh.priority,
            owner: fresh.owner,
            supervisor: fresh.supervisor,
            lease_until: None,
            ..stored
        };
        submission.entrance = Entrance::Adopted;
        let key = self.engine.with(|core, now| {
            if !core.is_open {
                return Err(SubmitError::Closed);
            }
            let key = core
                .scheduler
                .submit(submission, now, &mut core.out)
                .map_err(|_| SubmitError::Exists { id: id.clone(), why: NotAdoptable::Ours })?;
            core.journal.open(key, id.clone(), Some(version));
            Ok(key)
        })?;
        completion.wait_accepted()?;
        self.supersede_commands(&id)?;
        Ok(TaskRun { controller: self.clone(), key, id, completion })
    }

    /// Commands to the former holder will never be claimed: their issuers are told.
    fn supersede_commands(&self, id: &TaskId) -> Result<(), StoreError> {
        let receipt = Receipt::new(ReceiptKind::Superseded, "superseded by adoption");
        let commands = self.engine.store.commands(id)?.into_iter();
        let open = commands.filter(|command| {
            command.receipt.is_none() && command.request.holder != *self.engine.incarnation()
        });
        for command in open {
            self.engine.store.complete_command(&command.request.id, &receipt, Now::Store)?;
        }
        Ok(())
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

    /// Asks a task to stop. `Ok` = the request was accepted, here or by the task's holder.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn stop(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        self.end(id, EndCause::Stop, CommandKind::Stop, reason)
    }

    /// Withdraws a task: it ends as `cancelled`.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn cancel(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        self.end(id, EndCause::Cancel, CommandKind::Cancel, reason)
    }

    fn end(
        &self,
        id: &TaskId,
        cause: EndCause,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<(), ControlError> {
        let here = self.request(id, Request::End(cause), reason, None)?;
        if here.is_none() {
            self.send(id, kind, reason)?;
        }
        Ok(())
    }

    /// Asks a task to pause: `true` = it is `paused`; `false` = it did not get there within the limit
    /// (10 s unless given; a task held elsewhere always gets 10 s) and is `running` again.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn pause(
        &self,
        id: &TaskId,
        limit: Option<Duration>,
        reason: Option<&str>,
    ) -> Result<bool, ControlError> {
        let limit = limit.unwrap_or(DEFAULT_PAUSE_LIMIT);
        let slot = Arc::new(Slot::default());
        let asked = self.request(id, Request::Pause { limit }, reason, Some(Arc::clone(&slot)))?;
        if asked.is_some() {
            return match slot.wait() {
                Reply::Done => Ok(true),
                Reply::NotConfirmed => Ok(false),
                Reply::Ended(status) => Err(ControlError::Refused(ControlRefusal::Ended(status))),
            };
        }
        let Some(command) = self.send(id, CommandKind::Pause, reason)? else { return Ok(false) };
        let patience = DEFAULT_PAUSE_LIMIT + CLAIM_PATIENCE;
        match self.client().receipt(id, &command, patience)? {
            Answer::Receipt(receipt) => Ok(receipt.kind == ReceiptKind::Applied),
            Answer::HolderGone | Answer::TimedOut => Err(ControlError::NoAnswer),
        }
    }

    /// Lets a paused task go on.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn resume(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        if self.request(id, Request::Resume, reason, None)?.is_none() {
            self.send(id, CommandKind::Resume, reason)?;
        }
        Ok(())
    }

    /// Asks something of a task that is held here; `None` when it is not.
    fn request(
        &self,
        id: &TaskId,
        request: Request,
        reason: Option<&str>,
        slot: Option<Arc<Slot>>,
    ) -> Result<Option<()>, ControlError> {
        self.engine.with(|core, now| {
            let Some(key) = core.scheduler.key(id) else { return Ok(None) };
            let ticket = slot.map(|slot| core.ticket(Asker::Thread(slot)));
            let Core { scheduler, out, .. } = core;
            match scheduler.request(key, request, reason.map(clean), ticket, now, out) {
                Ok(()) => Ok(Some(())),
                Err(refused) => {
                    if let Some(ticket) = ticket {
                        core.void(ticket);
                    }
                    Err(refused.into())
                }
            }
        })
    }

    fn send(
        &self,
        id: &TaskId,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<Option<crate::id::CommandId>, ControlError> {
        match self.client().send(id, kind, reason)? {
            Sent::Command(command) => Ok(Some(command)),
            Sent::Done(_) => Ok(None),
            Sent::Refused(refusal) => Err(ControlError::Refused(refusal)),
        }
    }

    fn client(&self) -> ControlClient {
        ControlClient::new(Arc::clone(&self.engine.store), self.engine.node.owner.clone())
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
        let at = self.engine.clock.wall();
        reconcile(&*self.engine.store, &self.engine.ownership, dry_run, reason, at)
    }

    /// Faults of the store, oldest first: what could not be written when it should have been.
    #[must_use]
    pub fn persist_failures(&self) -> Vec<PersistFailure> {
        self.engine.lock().journal.faults().cloned().collect()
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

/// Time that a holder gets to notice a command, on top of what the command itself may take.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Runs one task to its end, in memory: no store to set up, no controller to keep.
///
/// ```
/// # use chongming_core::{run_task, TaskContext, TaskDefinition, TaskError, Value};
/// let hello = TaskDefinition::new("hello", |_: &TaskContext, name: String| {
///     Ok::<String, TaskError>(format!("hello {name}"))
/// });
/// assert_eq!(run_task(hello, "you")?.value().to_string(), "\"hello you\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RunError`]: the definition or its arguments are invalid.
pub fn run_task(
    definition: TaskDefinition,
    args: impl IntoValue,
) -> Result<Arc<Outcome>, RunError> {
    let submit = Submit::new(Arc::clone(&definition.name)).args(args);
    let controller = Controller::builder()
        .register(definition)
        .build()
        .map_err(|error| RunError::Configuration(Box::new(error)))?;
    let run = controller.submit(submit).map_err(RunError::Submit)?;
    run.wait(None).map_err(RunError::Wait)
}

/// Why [`run_task`] could not run a task to its end.
#[derive(Debug)]
pub enum RunError {
    /// The definition does not fit.
    Configuration(Box<ConfigurationError>),
    /// The submission does not fit.
    Submit(SubmitError),
    /// The wait was given up.
    Wait(WaitTimedOut),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(error) => error.fmt(f),
            Self::Submit(error) => error.fmt(f),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}
