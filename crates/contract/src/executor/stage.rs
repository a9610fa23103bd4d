//! Where a case plays: an executor of its own, and what is launched on it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use chongming_core::{
    AttemptEnd, AttemptFiles, Executor, Launch, Signal, Target, TaskDefinition, TaskId, Value,
};

use super::attempt::{Attempt, Door, Event, Forbidden, Sink};
use super::bodies::definitions;
use super::fixture::Fixture;
use crate::breach::{Breach, Outcome, present, same};

/// Tells apart what must not meet: tasks, folders, keys.
static NEXT: AtomicU64 = AtomicU64::new(1);

pub(super) fn unique() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A launch in the making, with the other end of its sink.
pub(super) struct Prepared {
    pub(super) launch: Launch,
    pub(super) events: Receiver<Event>,
    pub(super) door: Option<Door>,
}

/// A case's executor.
pub(super) struct Stage<'f> {
    fixture: &'f dyn Fixture,
    definitions: BTreeMap<String, TaskDefinition>,
    executor: Arc<dyn Executor>,
}

impl<'f> Stage<'f> {
    pub(super) fn new(fixture: &'f dyn Fixture) -> Self {
        let definitions = definitions().into_iter().map(|d| (d.name().to_owned(), d)).collect();
        Self { fixture, definitions, executor: fixture.executor() }
    }

    pub(super) fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// Drops the executor.
    pub(super) fn shut_down(self) -> Outcome {
        let Self { fixture, executor, .. } = self;
        in_time(fixture.patience(), "a drop of the executor", move || drop(executor))
    }

    pub(super) fn runs_inline(&self) -> bool {
        self.fixture.runs_inline()
    }

    pub(super) fn patience(&self) -> Duration {
        self.fixture.patience()
    }

    /// A body of the suite, as the executor takes it.
    pub(super) fn target(&self, body: &str) -> Outcome<Target> {
        let definition = self.definitions.get(&format!("contract.{body}"));
        Ok(self.fixture.target(present("the case itself: a body", definition)?))
    }

    /// A launch of a body.
    pub(super) fn prepare(&self, body: &str, args: impl Into<Value>) -> Outcome<Prepared> {
        Ok(self.prepare_target(body, self.target(body)?, args.into())?.0)
    }

    /// A launch of a body that comes to the case.
    pub(super) fn prepare_guest(&self, body: &str) -> Outcome<Prepared> {
        let (mut prepared, sink) = self.prepare_target(body, self.target(body)?, Value::Null)?;
        let door = Door::open(&sink)?;
        prepared.launch.args = Value::Int(i64::from(door.port));
        prepared.door = Some(door);
        Ok(prepared)
    }

    /// The same, of an attempt that may not begin.
    pub(super) fn prepare_forbidden(&self, body: &str) -> Outcome<Prepared> {
        let mut prepared = self.prepare_guest(body)?;
        prepared.launch.sink = Arc::new(Forbidden(prepared.launch.sink));
        Ok(prepared)
    }

    /// A launch of anything.
    pub(super) fn prepare_target(
        &self,
        body: &str,
        target: Target,
        args: Value,
    ) -> Outcome<(Prepared, Sender<Event>)> {
        let (tell, events) = channel();
        let launch = Launch {
            task_id: TaskId::new(format!("{}:{}", std::process::id(), unique()))?,
            name: format!("contract.{body}").into(),
            attempt: 1,
            target,
            args,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Sink(tell.clone())),
        };
        Ok((Prepared { launch, events, door: None }, tell))
    }

    /// Launches what was prepared.
    pub(super) fn start(&self, prepared: Prepared) -> Outcome<Attempt> {
        let Prepared { launch, events, door } = prepared;
        let executor = Arc::clone(&self.executor);
        let carrier = in_time(self.patience(), "a launch", move || executor.launch(launch))?;
        Ok(Attempt::new(carrier, events, door, self.patience()))
    }

    /// Launches several at once.
    pub(super) fn start_all(&self, prepared: Vec<Prepared>) -> Outcome<Vec<Attempt>> {
        let mut launches = Vec::new();
        let mut others = Vec::new();
        for Prepared { launch, events, door } in prepared {
            launches.push(launch);
            others.push((events, door));
        }
        let executor = Arc::clone(&self.executor);
        let launch = move || executor.launch_all(launches);
        let carriers = in_time(self.patience(), "a launch of several", launch)?;
        same("carriers for what was launched at once", carriers.len(), others.len())?;
        let attempts = carriers
            .into_iter()
            .zip(others)
            .map(|(carrier, (events, door))| Attempt::new(carrier, events, door, self.patience()));
        Ok(attempts.collect())
    }

    /// Launches a body.
    pub(super) fn launch(&self, body: &str, args: impl Into<Value>) -> Outcome<Attempt> {
        self.start(self.prepare(body, args)?)
    }

    /// Launches a body that comes to the case, and waits until it has.
    pub(super) fn launch_guest(&self, body: &str) -> Outcome<Attempt> {
        let mut attempt = self.start(self.prepare_guest(body)?)?;
        attempt.body_comes()?;
        Ok(attempt)
    }

    /// What is demanded of an executor that runs bodies inline wherever signals are sent: they come too late, and
    /// change nothing.
    pub(super) fn signals_come_too_late(&self) -> Outcome {
        let mut attempt = self.launch("echo", 7)?;
        let end = attempt.end()?;
        same("the end", end, AttemptEnd::Completed(Value::Int(7)))?;
        attempt.signal(Signal::Pause { epoch: 1 });
        attempt.signal(Signal::Resume);
        attempt.stop("too late");
        attempt.signal(Signal::Kill);
        same("reports after the end", attempt.reports()?, Vec::new())
    }
}

/// What a call of the executor gives, which must not take long. It is made on a thread of its own, so that one that
/// never returns holds up nobody but itself.
fn in_time<T: Send + 'static>(
    patience: Duration,
    what: &str,
    call: impl FnOnce() -> T + Send + 'static,
) -> Outcome<T> {
    let (tell, told) = channel();
    thread::Builder::new().name("contract-call".into()).spawn(move || drop(tell.send(call())))?;
    told.recv_timeout(patience).map_err(|error| match error {
        RecvTimeoutError::Timeout => Breach::of(what, "it returns at once", "it does not"),
        RecvTimeoutError::Disconnected => Breach::of(what, "it returns", "it panics"),
    })
}

/// A folder that goes with its case.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Outcome<Self> {
        let name = format!("chongming-contract-{}-{}", std::process::id(), unique());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(Breach::from)?;
        Ok(Self(path))
    }

    /// Places for an attempt in it, none of which exists yet.
    pub(super) fn files(&self) -> AttemptFiles {
        AttemptFiles { log: self.0.join("task/1.log"), artifact_dir: self.0.join("task/1") }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be deleted stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
