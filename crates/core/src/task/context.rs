//! What a body gets to talk to its supervisor (spec 5).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::future::poll_fn;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::artifacts::AttemptFiles;
use crate::executor::{AttemptSink, Launch, Report};
use crate::id::TaskId;
use crate::snapshot::Progress;
use crate::task::control::Control;
use crate::task::error::TaskError;
use crate::text::{Text, clean};
use crate::time::Timestamp;
use crate::value::{FromValue, Value};

/// Results of the succeeded upstream nodes, by node.
pub type Upstream = Arc<BTreeMap<Text, Value>>;

/// Signs of life closer together than this are reported as one.
pub const ACTIVITY_RESOLUTION: Duration = Duration::from_millis(50);

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For the author.
    Debug,
    /// For whoever reads along.
    Info,
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}

impl LogLevel {
    /// As it stands in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// Where the lines of [`TaskContext::log`] go instead of the attempt's log file.
pub type LogSink = Arc<dyn Fn(LogLevel, &str) -> io::Result<()> + Send + Sync>;

/// One attempt, seen from inside. Cheap to clone.
#[derive(Clone)]
pub struct TaskContext(Arc<Attempt>);

struct Attempt {
    task_id: TaskId,
    name: Text,
    number: u32,
    upstream: Upstream,
    files: Option<AttemptFiles>,
    control: Arc<Control>,
    sink: Arc<dyn AttemptSink>,
    log_sink: Option<LogSink>,
    log: Mutex<Option<File>>,
    started: Instant,
    /// Milliseconds after `started` of the latest reported sign of life, plus 1; 0 = none yet.
    last_activity: AtomicU64,
}

impl TaskContext {
    /// For executors: the inside of a launch, controlled by this token.
    #[must_use]
    pub fn new(launch: &Launch, control: Arc<Control>) -> Self {
        Self::with_log_sink(launch, control, None)
    }

    /// For executors whose attempts do not write their log file themselves.
    #[must_use]
    pub fn with_log_sink(
        launch: &Launch,
        control: Arc<Control>,
        log_sink: Option<LogSink>,
    ) -> Self {
        Self(Arc::new(Attempt {
            task_id: launch.task_id.clone(),
            name: launch.name.clone(),
            number: launch.attempt,
            upstream: Arc::clone(&launch.upstream),
            files: launch.files.clone(),
            control,
            sink: Arc::clone(&launch.sink),
            log_sink,
            log: Mutex::new(None),
            started: Instant::now(),
            last_activity: AtomicU64::new(0),
        }))
    }

    /// May its body begin?
    pub(crate) fn may_begin(&self) -> bool {
        self.0.sink.may_begin()
    }

    /// The task's id.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        &self.0.task_id
    }

    /// Name of its definition.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.number
    }

    /// A place where the task can be paused or stopped: a sign of life, waits while paused.
    ///
    /// # Errors
    /// An interruption once the task is to stop; hand it on with `?`.
    pub fn checkpoint(&self) -> Result<(), TaskError> {
        self.heartbeat();
        self.0.control.checkpoint(|epoch| self.0.sink.report(Report::Paused { epoch }))
    }

    /// [`checkpoint`](Self::checkpoint) for async bodies: suspends the future, not the thread.
    ///
    /// # Errors
    /// An interruption once the task is to stop; hand it on with `?`.
    pub async fn checkpoint_async(&self) -> Result<(), TaskError> {
        self.heartbeat();
        let mut told = None;
        poll_fn(|cx| {
            let paused = |epoch| self.0.sink.report(Report::Paused { epoch });
            self.0.control.poll_checkpoint(cx, &mut told, paused)
        })
        .await
    }

    /// Sleeps; a stop ends the sleep at once, a pause is taken at once and its length is slept again.
    ///
    /// # Errors
    /// An interruption once the task is to stop; hand it on with `?`.
    pub fn sleep(&self, duration: Duration) -> Result<(), TaskError> {
        let mut left = duration;
        loop {
            self.checkpoint()?;
            let since = Instant::now();
            self.0.control.wait_asked(left);
            left = left.saturating_sub(since.elapsed());
            if left.is_zero() {
                return self.checkpoint();
            }
        }
    }

    /// Was a stop asked for? Looking counts as having been told.
    #[must_use]
    pub fn is_stop_requested(&self) -> bool {
        self.0.control.is_stop_requested()
    }

    /// Is a pause asked for? The next checkpoint takes it.
    #[must_use]
    pub fn is_pause_requested(&self) -> bool {
        self.0.control.is_pause_requested()
    }

    /// A sign of life without a checkpoint.
    pub fn heartbeat(&self) {
        let now = self.0.started.elapsed().as_millis() as u64 + 1;
        let last = self.0.last_activity.load(Ordering::Relaxed);
        if last == 0 || now - last.min(now) >= ACTIVITY_RESOLUTION.as_millis() as u64 {
            self.0.last_activity.store(now, Ordering::Relaxed);
            self.0.sink.report(Report::Activity);
        }
    }

    /// Reports progress: `ctx.progress(3.0).total(10.0).unit("rows").report()`. Not a sign of life.
    pub fn progress(&self, done: f64) -> ProgressReport<'_> {
        let progress = Progress { done, total: None, unit: None, message: None };
        ProgressReport { context: self, progress }
    }

    /// Writes a line to the attempt's log.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn log(&self, level: LogLevel, message: &str) -> io::Result<()> {
        if let Some(sink) = &self.0.log_sink {
            return sink(level, message);
        }
        let Some(files) = &self.0.files else { return Ok(()) };
        let mut log = self.0.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match log.take() {
            Some(file) => file,
            None => {
                if let Some(dir) = files.log.parent() {
                    fs::create_dir_all(dir)?;
                }
                OpenOptions::new().create(true).append(true).open(&files.log)?
            }
        };
        let at = Timestamp::from(std::time::SystemTime::now());
        let written = file.write_all(format!("{at} {} {message}\n", level.as_str()).as_bytes());
        *log = Some(file);
        written
    }

    /// The result of an upstream node.
    ///
    /// # Errors
    /// There is no succeeded upstream node of this name, or its result has another shape.
    pub fn input<T: FromValue>(&self, node: &str) -> Result<T, TaskError> {
        match self.0.upstream.get(node) {
            Some(value) => T::from_value(value.clone()).map_err(|error| {
                TaskError::permanent(format!(
                    "the result of upstream node {node:?} does not fit: {error}"
                ))
            }),
            None => {
                Err(TaskError::permanent(format!("there is no succeeded upstream node {node:?}")))
            }
        }
    }

    /// The result of an upstream node, or `default` where that node did not succeed.
    ///
    /// # Errors
    /// The node's result has another shape.
    pub fn input_or<T: FromValue>(&self, node: &str, default: T) -> Result<T, TaskError> {
        if self.0.upstream.contains_key(node) { self.input(node) } else { Ok(default) }
    }

    /// Results of all succeeded upstream nodes.
    #[must_use]
    pub fn upstream(&self) -> &BTreeMap<Text, Value> {
        &self.0.upstream
    }

    /// This attempt's own folder for files, made on first use.
    ///
    /// # Errors
    /// The controller keeps no artifacts, or the folder cannot be made.
    pub fn artifact_dir(&self) -> io::Result<PathBuf> {
        let files = self.0.files.as_ref().ok_or_else(|| {
            io::Error::other(
                "this controller keeps no artifacts; give its builder an artifacts folder",
            )
        })?;
        fs::create_dir_all(&files.artifact_dir)?;
        Ok(files.artifact_dir.clone())
    }
}

/// A progress report in the making.
#[must_use = "a progress report does nothing until `report` is called"]
pub struct ProgressReport<'a> {
    context: &'a TaskContext,
    progress: Progress,
}

impl ProgressReport<'_> {
    /// Of how many.
    pub fn total(mut self, total: f64) -> Self {
        self.progress.total = Some(total);
        self
    }

    /// Of what.
    pub fn unit(mut self, unit: &str) -> Self {
        self.progress.unit = Some(clean(unit));
        self
    }

    /// Doing what.
    pub fn message(mut self, message: &str) -> Self {
        self.progress.message = Some(clean(message));
        self
    }

    /// Hands it in. A number that JSON cannot express is left out.
    pub fn report(mut self) {
        self.progress.total = self.progress.total.filter(|total| total.is_finite());
        if self.progress.done.is_finite() {
            self.context.0.sink.report(Report::Progress(self.progress));
        }
    }
}
