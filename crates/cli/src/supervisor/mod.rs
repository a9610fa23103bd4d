//! Running tasks in the foreground: a controller for this process, its signals, and what it shows.

pub(crate) mod definition;
mod foreground;
pub(crate) mod pipeline;
mod screen;
mod signals;
pub(crate) mod single;
mod work;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::TaskStore;
use chongming_core::{
    CloseMode, Closed, Controller, Outcome, Submit, TaskDefinition, TaskId, TaskRun, TaskSnapshot,
};
use chongming_executor_process::ProcessExecutor;

use crate::args::global::{Settings, Verbosity};
use crate::args::running::RunningArgs;
use crate::error::CliError;
use crate::manifest::Manifest;
use crate::module::TaskModule;
use crate::open_store::{self, Opened};
use crate::output::console::{Console, print_note};
use definition::DEFAULT_GRACE;
use foreground::Foreground;
use screen::Screen;
use signals::Caught;
use work::Work;

/// Time for the last writes of a controller whose tasks have ended.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);
/// How long a store that fails is tried again for the last writes.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks whether it has taken them.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So many faults of the store are told one by one.
const FAULTS_TOLD: usize = 5;

/// How much may run at a time, and where its files go, as a module says.
#[derive(Default)]
pub(crate) struct Limits {
    max_parallel: Option<NonZeroU32>,
    max_parallel_per_bucket: Option<NonZeroU32>,
    resources: BTreeMap<String, NonZeroU32>,
    artifacts: Option<PathBuf>,
}

impl Limits {
    /// Only a manifest sets any.
    pub(crate) fn of(module: &TaskModule<'_>) -> Self {
        match module {
            TaskModule::Manifest(manifest) => Self::of_manifest(manifest),
            TaskModule::Executable(_) | TaskModule::Own(_) => Self::default(),
        }
    }

    pub(crate) fn of_manifest(manifest: &Manifest) -> Self {
        Self {
            max_parallel: manifest.max_parallel,
            max_parallel_per_bucket: manifest.max_parallel_per_bucket,
            resources: manifest.resources.clone(),
            artifacts: manifest.artifacts.as_ref().map(|folder| manifest.folder().join(folder)),
        }
    }
}

/// A controller in the foreground.
pub(crate) struct Supervisor {
    controller: Controller,
    store: Arc<dyn TaskStore>,
    screen: Option<Screen>,
    verbosity: Verbosity,
    /// Lines on the terminal tell how far the work has come.
    is_live: bool,
    color: bool,
    signals: Caught,
    grace: Option<Duration>,
}

impl Supervisor {
    /// Sets the controller up, and makes its store where there is none yet. From here on signals are caught.
    pub(crate) fn start(
        opened: Option<Opened>,
        limits: &Limits,
        running: &RunningArgs,
        settings: &Settings,
        console: &Console,
    ) -> Result<Self, CliError> {
        let Opened { store, ownership } =
            opened.map_or_else(|| open_store::create(settings), Ok)?;
        let signals = Caught::new()?;
        let is_quiet = settings.verbosity == Verbosity::Quiet;
        let screen = if is_quiet { None } else { Some(Screen::on_stderr()?) };
        let mut executor = ProcessExecutor::builder().adopt_orphans();
        if let Some(screen) = &screen {
            executor = executor.echo(screen.echo());
        }
        let executor = executor.build().map_err(|error| CliError::new(error.to_string()))?;
        let artifacts = match running.artifacts.as_ref().or(limits.artifacts.as_ref()) {
            Some(folder) => open_store::absolute(folder)?,
            None => open_store::default_artifacts(&settings.database)?,
        };
        let mut builder = Controller::builder()
            .store(Arc::clone(&store))
            .executor(Arc::new(executor))
            .num_buckets(ownership.num_buckets())
            .artifacts(artifacts)
            .grace(running.grace.unwrap_or(DEFAULT_GRACE))
            .lease_ttl(running.lease_ttl);
        if let Some(owner) = &settings.owner {
            builder = builder.owner(owner.as_str());
        }
        if let Some(owned) = ownership.declared() {
            builder = builder.owned_buckets(owned.clone());
        }
        if let Some(slots) = limits.max_parallel {
            builder = builder.max_parallel(slots.get() as usize);
        }
        if let Some(slots) = limits.max_parallel_per_bucket {
            builder = builder.max_parallel_per_bucket(slots.get() as usize);
        }
        for (name, permits) in &limits.resources {
            builder = builder.resource(name.as_str(), permits.get() as usize);
        }
        let controller = builder.build().map_err(|error| CliError::new(error.to_string()))?;
        Ok(Self {
            controller,
            store,
            is_live: screen.is_some() && console.err_is_terminal(),
            color: console.err_color(),
            screen,
            verbosity: settings.verbosity,
            signals,
            grace: running.grace,
        })
    }

    /// Runs one task to its end.
    pub(crate) fn run(
        self,
        definition: TaskDefinition,
        submit: Submit,
    ) -> Result<Outcome, CliError> {
        let grace = self.grace.or(definition.defaults().grace).unwrap_or(DEFAULT_GRACE);
        self.submit([definition], grace, |controller| controller.submit(submit))
    }

    /// Runs a pipeline to its end.
    pub(crate) fn run_pipeline(
        self,
        definitions: Vec<TaskDefinition>,
        pipeline: &chongming_pipeline::Pipeline,
        name: &str,
        run: &TaskId,
    ) -> Result<chongming_pipeline::PipelineOutcome, CliError> {
        let graces = definitions.iter().filter_map(|definition| definition.defaults().grace);
        let grace = self.grace.or(graces.max()).unwrap_or(DEFAULT_GRACE).max(DEFAULT_GRACE);
        self.submit(definitions, grace, |controller| {
            let run = pipeline.start_as(controller, run)?;
            Ok::<_, chongming_pipeline::StartError>(pipeline::NamedRun {
                pipeline: name.to_owned(),
                run,
            })
        })
    }

    /// Submits work of these definitions, and waits for its end; a stop of it may take this long.
    fn submit<W: Work, E: Display>(
        self,
        definitions: impl IntoIterator<Item = TaskDefinition>,
        grace: Duration,
        submit: impl FnOnce(&Controller) -> Result<W, E>,
    ) -> Result<W::Outcome, CliError> {
        definitions.into_iter().try_for_each(|definition| self.register(definition))?;
        let work = submit(&self.controller).map_err(|error| {
            self.controller.close(CloseMode::Stop, CLOSE_LIMIT, false);
            CliError::new(error.to_string())
        })?;
        self.attend(&work, grace)
    }

    fn register(&self, definition: TaskDefinition) -> Result<(), CliError> {
        let registered = self.controller.register(definition);
        registered.map_err(|error| CliError::internal(error.to_string()))
    }

    /// Waits for the end of what was submitted; a stop of it may take this long.
    fn attend<W: Work>(self, work: &W, grace: Duration) -> Result<W::Outcome, CliError> {
        let Self { controller, store, screen, verbosity, is_live, color, signals, .. } = self;
        if verbosity > Verbosity::Quiet {
            // A node that starts into an overlap says so at once (spec 12).
            match controller.alerts() {
                Ok(alerts) => alerts.iter().for_each(|alert| print_note(&alert.to_string())),
                Err(error) => print_note(&format!("whether nodes overlap is unknown: {error}")),
            }
        }
        let foreground = Foreground {
            controller: &controller,
            work,
            screen: screen.as_ref(),
            verbosity,
            is_live,
            color,
            grace,
        };
        let ended = foreground.attend(signals);
        await_written(&controller);
        let closed = controller.close(CloseMode::Wait, CLOSE_LIMIT, false);
        if let Some(screen) = screen {
            screen.finish();
        }
        tell_faults(&controller);
        let tasks = work.tasks();
        let mut taken = controller.desynced_tasks();
        taken.retain(|id| tasks.iter().any(|task| task.id() == id));
        let strangers = tell_taken(&*store, &taken, &tasks);
        let ended = ended.map(|outcome| {
            let mut outcome = Arc::unwrap_or_clone(outcome);
            for task in W::snapshots(&mut outcome) {
                read_stored(&*store, &taken, task);
            }
            W::conclude(&mut outcome);
            outcome
        });
        if let Err(error) = store.close() {
            print_note(&error.to_string());
        }
        let ended = ended?;
        if let Some(id) = strangers.first() {
            let what = format!("task id {:?} exists already; use another id", id.as_str());
            return Err(CliError::new(what).hint(
                "it was another process's before the database could be asked: what ran here is not recorded",
            ));
        }
        if closed.unwritten > 0 {
            return Err(unwritten(&tasks, closed));
        }
        Ok(ended)
    }
}

/// A store that fails is tried again by the controller for as long as that is open: on a full disk there may be room
/// in a moment.
fn await_written(controller: &Controller) {
    let until = Instant::now() + WRITE_LIMIT;
    while controller.unwritten() > 0 && Instant::now() < until {
        thread::sleep(LOOK_EVERY);
    }
}

/// What ended, and could not be written.
fn unwritten(tasks: &[&TaskRun], closed: Closed) -> CliError {
    let ends: Vec<String> = tasks
        .iter()
        .filter_map(|run| run.snapshot())
        .take(FAULTS_TOLD)
        .map(|task| format!("`{}` ({})", task.id, task.status()))
        .collect();
    CliError::new(format!(
        "the database does not have all of what became of {} of these tasks: {}",
        closed.unwritten,
        ends.join(", ")
    ))
    .hint("they may be shown as unfinished, or be missing where nothing of them was ever written; when the database can be written again, and the lease has run out, `reconcile` settles them")
}

/// The lease of an ended task is read through its holder's row (spec 12), so only the store knows what `status`
/// will show. Of a task that was taken from us it knows the end, too, also where we knew another before it could
/// be written. A store that cannot be read has been told of already.
fn read_stored(store: &dyn TaskStore, taken: &[TaskId], task: &mut TaskSnapshot) {
    match store.get(&task.id) {
        Ok(Some(stored)) if !stored.is_same_task(task) => {}
        Ok(Some(stored)) if taken.contains(&task.id) => *task = stored,
        Ok(Some(stored)) => task.lease_until = stored.lease_until,
        Ok(None) | Err(_) => {}
    }
}

/// Tells of tasks that somebody else writes (spec 10). Those that never were ours are the answer: somebody had made
/// them before a store that could not be asked took in ours.
fn tell_taken(store: &dyn TaskStore, taken: &[TaskId], tasks: &[&TaskRun]) -> Vec<TaskId> {
    let mut strangers = Vec::new();
    for id in taken {
        let ours = tasks.iter().find(|task| task.id() == id).and_then(|task| task.snapshot());
        match (store.get(id), ours) {
            (Ok(Some(stored)), Some(ours)) if !stored.is_same_task(&ours) => {
                strangers.push(id.clone());
            }
            _ => print_note(&format!("`{id}` was taken over by another process meanwhile")),
        }
    }
    strangers
}

/// What the store could not keep: never kept to ourselves (spec 10).
fn tell_faults(controller: &Controller) {
    let faults = controller.persist_failures();
    for fault in faults.iter().take(FAULTS_TOLD) {
        let task = fault.task_id.as_ref().map(|id| format!(" of `{id}`")).unwrap_or_default();
        let lost = if fault.dropped { ", and is lost" } else { "" };
        print_note(&format!("a write{task} failed at {}{lost}: {}", fault.at, fault.error));
    }
    if let Some(more) = faults.len().checked_sub(FAULTS_TOLD).filter(|more| *more > 0) {
        print_note(&format!("and {more} more writes failed"));
    }
}

#[cfg(test)]
mod tests {
    use chongming_core::store::Entry;
    use chongming_core::{InMemoryStore, Status, Timestamp, Trigger, machine};

    use super::*;

    #[test]
    fn of_a_task_that_was_taken_the_store_knows_the_end() {
        let (store, at) = (InMemoryStore::new(), Timestamp::from_micros(0));
        let id = TaskId::new("t").unwrap();
        let ended = |at, status, trigger| {
            let mut task = TaskSnapshot::pending(id.clone(), "t", "me".into(), at);
            let queued = (Status::Queued, Trigger::DependenciesResolved);
            let rows = [queued, (status, trigger)].map(|(status, trigger)| {
                machine::apply(&mut task, status, trigger, at, None).unwrap()
            });
            (task, rows.to_vec())
        };
        let (stored, transitions) = ended(at, Status::Cancelled, Trigger::UserCancel);
        let create = Entry::Create { snapshot: stored.into(), transitions };
        assert_eq!(store.write(&[create]).unwrap(), [Ok(())]);
        let told = |taken: &[TaskId], at| {
            let (mut task, _) = ended(at, Status::Stopped, Trigger::UserStop);
            read_stored(&store, taken, &mut task);
            task.status()
        };
        assert_eq!(told(&[], at), Status::Stopped, "not written, and not refused");
        assert_eq!(told(std::slice::from_ref(&id), at), Status::Cancelled);
        let later = Timestamp::from_micros(1);
        assert_eq!(told(std::slice::from_ref(&id), later), Status::Stopped, "another of this id");
    }
}
