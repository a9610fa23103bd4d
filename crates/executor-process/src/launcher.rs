//! A few threads that start children: a start waits until the child's program runs, so neither the caller
//! nor the reactor does it.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use chongming_core::{AttemptEnd, AttemptFiles, Failure, FailureKind, Launch, Report, clean};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::child::{NewChild, report};
use crate::command::{Command, command_of};
use crate::environment::{Inherited, SERVE_ARGUMENT};
use crate::gate::Gate;
use crate::group::Group;
use crate::guardian::Line;
use crate::log_file::LogFile;
use crate::mailbox::{ChildId, Mailbox, lock};
use crate::output::Output;
use crate::procfs::since_boot;
use crate::program;
use crate::protocol::{CHILD_IN, CHILD_OUT, Channel, Down, Partner, Session, Start};
use crate::question::Yes;
use crate::source::Watch;
use crate::sys::{Place, Spawn, spawn_if};

/// Why a launch failed.
struct Problem {
    message: String,
    /// Nothing but another command would help. What depends on the machine (files, rights, limits) may pass.
    is_lasting: bool,
}

impl Problem {
    fn lasting(message: String) -> Self {
        Self { message, is_lasting: true }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, is_lasting: false }
    }
}

/// One attempt to start.
pub(crate) struct Job {
    pub(crate) id: ChildId,
    pub(crate) launch: Launch,
    pub(crate) gate: Arc<Gate>,
}

/// The threads and their queue.
pub(crate) struct Launcher {
    shared: Arc<Shared>,
    max_threads: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    inherited: Inherited,
    /// What runs Rust functions.
    program: PathBuf,
    null: OwnedFd,
    line: Line,
    watch: Arc<Watch>,
    mailbox: Arc<Mailbox>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

impl Launcher {
    /// `program` runs Rust functions; `null` is `/dev/null`, the children's standard input.
    pub(crate) fn new(
        inherited: Inherited,
        program: PathBuf,
        null: OwnedFd,
        line: Line,
        watch: Arc<Watch>,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let max_threads = thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            inherited,
            program,
            null,
            line,
            watch,
            mailbox,
        };
        Self { shared: Arc::new(shared), max_threads }
    }

    /// Takes a job. Never blocks for long.
    pub(crate) fn push(&self, job: Job) {
        let mut queue = lock(&self.shared.queue);
        if queue.closed {
            drop(queue);
            refuse(&job);
            return;
        }
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.idle && queue.threads.len() < self.max_threads {
            let shared = Arc::clone(&self.shared);
            let name = format!("launch-{}", queue.threads.len());
            match thread::Builder::new().name(name).spawn(move || shared.work()) {
                Ok(thread) => queue.threads.push(thread),
                Err(error) if queue.threads.is_empty() => {
                    let job = queue.jobs.pop_back();
                    drop(queue);
                    if let Some(job) = job {
                        fail(&job, format!("no thread to start it with: {error}").into());
                    }
                    return;
                }
                // The others will do it.
                Err(_) => {}
            }
        }
        drop(queue);
        self.shared.wake.notify_one();
    }

    /// Takes no more jobs; those that wait are never started. Returns the threads to be joined.
    pub(crate) fn close(&self) -> Vec<JoinHandle<()>> {
        let (jobs, threads) = {
            let mut queue = lock(&self.shared.queue);
            queue.closed = true;
            (mem::take(&mut queue.jobs), mem::take(&mut queue.threads))
        };
        self.shared.wake.notify_all();
        jobs.iter().for_each(refuse);
        threads
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let job = loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.closed {
                    return;
                }
                queue.idle += 1;
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            };
            drop(queue);
            self.carry_out(&job);
        }
    }

    fn carry_out(&self, job: &Job) {
        if job.gate.is_over_before_start() {
            end_unstarted(job, "it was told to end before it was launched");
            return;
        }
        let _under_way = self.mailbox.launching();
        // A template is foreign code, which may panic.
        let started = catch_unwind(AssertUnwindSafe(|| self.start(job)))
            .unwrap_or_else(|_| Err("the making of its command panicked".to_owned().into()));
        match started {
            Ok(None) => end_unstarted(
                job,
                "its task was taken over, or the controller closed, before it was launched",
            ),
            Ok(Some(child)) => {
                // A program that serves a task is launched when it says so.
                if child.server_since.is_none() {
                    report(&*job.launch.sink, Report::Launched);
                }
                job.gate.started(child, &self.watch, &self.mailbox);
            }
            Err(problem) => fail(job, problem),
        }
    }

    /// Nothing when it may not begin.
    fn start(&self, job: &Job) -> Result<Option<NewChild>, Problem> {
        let launch = &job.launch;
        let command = command_of(launch, &self.program)?;
        let cwd = program::absolute(&command.cwd)?;
        let (up, up_writer) = pipe()?;
        let pipe_inode = rustix::fs::fstat(&up_writer).map_err(descriptors)?.st_ino;
        let variables = self.inherited.for_attempt(job.id, launch, &command, pipe_inode);
        let variables = variables.map_err(Problem::lasting)?;
        let argv = argv(&command).map_err(Problem::lasting)?;
        let name = command.argv.first().map_or("", String::as_str);
        let file = program::find(name, &cwd, variables.get("PATH"))?;
        let (out, out_writer) = pipe()?;
        let (err, err_writer) = pipe()?;
        let (down_reader, down) = pipe_with(PipeFlags::CLOEXEC).map_err(descriptors)?;
        ioctl_fionbio(&down, true).map_err(descriptors)?;
        let argv: Vec<&CStr> = argv.iter().map(CString::as_c_str).collect();
        let (program, env, dir) = (c_path(&file)?, variables.entries(), c_path(&cwd)?);
        let start = Start::of(launch, command.serves.as_deref().unwrap_or(&launch.name));
        let is_server = command.serves.is_some();
        let partner = command.serves.map_or(Partner::Command, |task| Partner::Server { task });
        let mut channel = Channel::new(up, down, &Down::Start(start), Session::new(partner));
        // Its orders lie ready, so that a child waits for nothing that this process does later.
        channel.flush();
        let files = launch.files.as_ref();
        let log = files.map(|files| prepare_files(files, command.max_log_bytes)).transpose()?;
        let announced = self.line.announce(pipe_inode);
        let discard = || files.into_iter().for_each(discard_files);
        let child = Spawn {
            program: &program,
            argv: &argv,
            env: &env,
            cwd: &dir,
            fds: &[
                (self.null.as_fd(), 0),
                (out_writer.as_fd(), 1),
                (err_writer.as_fd(), 2),
                (down_reader.as_fd(), CHILD_IN),
                (up_writer.as_fd(), CHILD_OUT),
            ],
            place: Place::OwnGroup,
        };
        let since = since_boot();
        let started = spawn_if(&child, || Yes::of(&*launch.sink)).map_err(|error| {
            discard();
            match error {
                Errno::MFILE | Errno::NFILE => descriptors(error),
                other => program::spawn_problem(&file, &cwd, other),
            }
        })?;
        let Some((leader, yes)) = started else {
            discard();
            return Ok(None);
        };
        let mut group = Group::of_new_child(leader)
            .map_err(|error| format!("its process cannot be watched: {}", descriptors(error)))?;
        // Until then the guardian knows it by its pipe.
        if !yes.confirm(&mut group) {
            discard();
            return Ok(None);
        }
        let known_to = announced.started(&group);
        let output = Output::new(out, err, log);
        let sink = Arc::clone(&launch.sink);
        let grace = command.grace;
        Ok(Some(NewChild {
            id: job.id,
            group,
            pipe: pipe_inode,
            since,
            grace,
            server_since: is_server.then(Instant::now),
            output,
            channel,
            sink,
            known_to,
            is_watched: false,
        }))
    }
}

fn prepare_files(files: &AttemptFiles, max_log_bytes: u64) -> Result<LogFile, String> {
    let log = LogFile::create(&files.log, max_log_bytes)
        .map_err(|error| format!("its log {:?} cannot be created: {error}", files.log))?;
    create_dir(&files.artifact_dir).map_err(|error| {
        discard_files(files);
        format!("its artifact folder {:?} cannot be created: {error}", files.artifact_dir)
    })?;
    Ok(log)
}

/// What was never launched leaves no files. A folder that holds something stays.
fn discard_files(files: &AttemptFiles) {
    let _ = fs::remove_file(&files.log);
    let _ = fs::remove_dir(&files.artifact_dir);
}

/// One system call where the parent exists.
fn create_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => Ok(()),
        Err(_) => fs::create_dir_all(dir),
    }
}

/// A pipe whose read end does not block; the child's end does.
fn pipe() -> Result<(OwnedFd, OwnedFd), String> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(descriptors)?;
    ioctl_fionbio(&reader, true).map_err(descriptors)?;
    Ok((reader, writer))
}

fn descriptors(error: Errno) -> String {
    match error {
        Errno::MFILE => "this program has too many open files (see ulimit -n)".to_owned(),
        Errno::NFILE => "this system has too many open files".to_owned(),
        other => other.to_string(),
    }
}

/// A program that serves a task is told so by its environment; the arguments are for people who look, and
/// for programs that serve nothing, to refuse them.
///
/// # Errors
/// No system could run such a command.
fn argv(command: &Command) -> Result<Vec<CString>, String> {
    if command.argv.first().is_none_or(String::is_empty) {
        return Err("the command names no program".to_owned());
    }
    let serves = command.serves.as_deref().map(|task| [SERVE_ARGUMENT.to_owned(), task.to_owned()]);
    command
        .argv
        .iter()
        .chain(serves.iter().flatten())
        .enumerate()
        .map(|(i, argument)| {
            CString::new(argument.as_str())
                .map_err(|_| format!("argument {i} of its command contains a NUL character"))
        })
        .collect()
}

fn c_path(path: &Path) -> Result<CString, Problem> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Problem::lasting(format!("the path {path:?} contains a NUL character")))
}

fn fail(job: &Job, problem: Problem) {
    job.gate.never_started();
    let Problem { message, is_lasting } = problem;
    let failure = Failure::new(FailureKind::LaunchFailed, message);
    let failure = if is_lasting { failure.permanent() } else { failure };
    report(&*job.launch.sink, Report::LaunchFailed(failure));
}

fn refuse(job: &Job) {
    end_unstarted(job, "its executor was closed before it was launched");
}

fn end_unstarted(job: &Job, why: &str) {
    job.gate.never_started();
    let end = AttemptEnd::Interrupted { message: Some(clean(why)) };
    report(&*job.launch.sink, Report::Ended(end));
}
