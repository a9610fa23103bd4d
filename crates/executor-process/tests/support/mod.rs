//! An executor whose reports and output can be waited for. Nothing here sleeps and hopes.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support"
)]

pub mod tasks;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use chongming_core::{
    AttemptEnd, AttemptFiles, AttemptSink, Carrier, Executor, Failure, FailureKind, Launch, Report,
    Signal, Target, TaskId, Value,
};
use chongming_executor_process::{Command, ProcessExecutor, ProcessExecutorBuilder};

/// Long enough for any machine; only a broken test waits for it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Something that others change and we wait for.
pub struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until `find` finds something.
    pub fn wait<R>(&self, what: &str, mut find: impl FnMut(&T) -> Option<R>) -> R
    where
        T: std::fmt::Debug,
    {
        let deadline = Instant::now() + DEADLINE;
        let mut value = self.value.lock().unwrap();
        loop {
            if let Some(found) = find(&value) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}; got {value:?}");
            value = self.changed.wait_timeout(value, left).unwrap().0;
        }
    }

    pub fn get<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.lock().unwrap())
    }
}

/// An executor, and what its commands wrote.
pub struct Rig {
    pub executor: ProcessExecutor,
    pub output: Arc<Watched<String>>,
    pub dir: tempfile::TempDir,
}

pub const TEST_PROGRAM: &str = env!("CARGO_BIN_EXE_process-test-program");

impl Rig {
    pub fn new() -> Self {
        Self::with(|builder| builder)
    }

    /// With more options.
    pub fn with(options: impl FnOnce(ProcessExecutorBuilder) -> ProcessExecutorBuilder) -> Self {
        let output = Arc::new(Watched::new(String::new()));
        let copy = Arc::clone(&output);
        let echo = move |bytes: &[u8]| {
            copy.change(|all| all.push_str(&String::from_utf8_lossy(bytes)));
        };
        let builder = ProcessExecutor::builder().program(TEST_PROGRAM).echo(Arc::new(echo));
        let executor = options(builder).build().unwrap();
        Self { executor, output, dir: tempfile::tempdir().unwrap() }
    }

    pub fn log(&self) -> PathBuf {
        self.files(1).log
    }

    /// Of the attempt with this number. Attempts that go on at once have each their own: one whose launch fails takes
    /// its files away.
    pub fn files(&self, attempt: u32) -> AttemptFiles {
        let dir = self.dir.path().join("task");
        AttemptFiles {
            log: dir.join(format!("{attempt}.log")),
            artifact_dir: dir.join(attempt.to_string()),
        }
    }

    pub fn launch(&self, command: Command) -> Attempt {
        launch(&self.executor, command, Some(self.files(1)))
    }

    pub fn sh(&self, script: &str) -> Attempt {
        self.launch(sh(script))
    }

    /// Waits until a command has written `WORD <number>`.
    pub fn number(&self, word: &str) -> i32 {
        self.output.wait(word, |all| {
            let line = all.lines().find(|line| line.starts_with(&format!("{word} ")))?;
            // A line that is still being written does not count.
            all.contains(&format!("{line}\n")).then(|| line[word.len() + 1..].parse().unwrap())
        })
    }

    pub fn wait_output(&self, text: &str) {
        self.output.wait(text, |all| all.contains(text).then_some(()));
    }
}

pub fn sh(script: &str) -> Command {
    Command::new(["/bin/sh", "-c", script])
}

pub fn launch(
    executor: &ProcessExecutor,
    command: Command,
    files: Option<AttemptFiles>,
) -> Attempt {
    let reports = Arc::new(Watched::new(Vec::new()));
    launch_to(executor, command, files, Arc::new(Sink(Arc::clone(&reports))), reports)
}

/// The same with a sink of the test's own, which passes on what is reported.
pub fn launch_to(
    executor: &ProcessExecutor,
    command: Command,
    files: Option<AttemptFiles>,
    sink: Arc<dyn AttemptSink>,
    reports: Arc<Watched<Vec<Report>>>,
) -> Attempt {
    let carrier = executor.launch(Launch {
        task_id: TaskId::new("task").unwrap(),
        name: "job".into(),
        attempt: 1,
        target: Target::External(command.into_target()),
        args: Value::Null,
        upstream: Arc::default(),
        files,
        sink,
    });
    Attempt { carrier, reports }
}

pub struct Sink(pub Arc<Watched<Vec<Report>>>);

impl AttemptSink for Sink {
    fn report(&self, report: Report) {
        self.0.change(|all| all.push(report));
    }

    fn may_begin(&self) -> bool {
        true
    }
}

pub struct Attempt {
    pub carrier: Arc<dyn Carrier>,
    pub reports: Arc<Watched<Vec<Report>>>,
}

impl Attempt {
    pub fn stop(&self) {
        self.carrier.signal(Signal::Stop { reason: "test".into(), grace: Duration::from_secs(60) });
    }

    pub fn kill(&self) {
        self.carrier.signal(Signal::Kill);
    }

    pub fn launched(&self) {
        self.reports.wait("launched", |all| all.contains(&Report::Launched).then_some(()));
    }

    pub fn paused(&self, epoch: u64) {
        let wanted = Report::Paused { epoch };
        self.reports.wait("paused", |all| all.contains(&wanted).then_some(()));
    }

    pub fn ended(&self) -> AttemptEnd {
        self.reports.wait("the end", |all| {
            all.iter().find_map(|report| match report {
                Report::Ended(end) => Some(end.clone()),
                _ => None,
            })
        })
    }

    pub fn failed(&self) -> Failure {
        match self.ended() {
            AttemptEnd::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    pub fn interrupted(&self) -> String {
        match self.ended() {
            AttemptEnd::Interrupted { message } => message.unwrap().to_string(),
            other => panic!("{other:?}"),
        }
    }

    pub fn completed(&self) {
        assert_eq!(self.ended(), AttemptEnd::Completed(Value::Null));
    }

    /// The message of the launch that failed, after which nothing may come.
    pub fn launch_failed(&self) -> String {
        self.launch_failure().message.to_string()
    }

    /// The launch that failed, after which nothing may come.
    pub fn launch_failure(&self) -> Failure {
        let failure = self.reports.wait("the failed launch", |all| {
            all.iter().find_map(|report| match report {
                Report::LaunchFailed(failure) => Some(failure.clone()),
                _ => None,
            })
        });
        assert_eq!(failure.kind, FailureKind::LaunchFailed);
        assert_eq!(self.reports.get(Vec::len), 1);
        failure
    }
}

/// State letter of a process; `None` when it is gone or only a zombie.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

pub fn is_gone(pid: i32) -> bool {
    state(pid).is_none()
}

/// A shell's words: starts a program whose first thread ends while another goes on, after these words, and says
/// `pid` and its number when that is so.
pub fn without_first_thread(before: &str) -> String {
    format!(
        "{before} python3 -c 'import ctypes, threading, time; \
         threading.Thread(target=time.sleep, args=(1000,)).start(); ctypes.CDLL(None).pthread_exit(None)' & \
         until grep -q \"^State:.Z\" /proc/$!/status; do sleep 0.01; done; echo pid $!; "
    )
}

/// Has every thread of this process ended? Its letter in `/proc` is that of the first one.
pub fn has_ended(pid: i32) -> bool {
    ends_within(pid, Duration::ZERO)
}

/// The processes with this in their arguments.
pub fn bearers_of(mark: &str) -> impl Iterator<Item = i32> + '_ {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(move |entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&arguments).contains(mark).then_some(pid)
    })
}

/// Waits for a process that is not ours to end: its pidfd tells.
pub fn wait_until_gone(pid: i32) {
    assert!(ends_within(pid, DEADLINE), "process {pid} lives on");
}

fn ends_within(pid: i32, limit: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let pid = Pid::from_raw(pid).unwrap();
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let limit = rustix::time::Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)).unwrap() > 0
}
