//! The executor itself: what the controller sees.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use chongming_core::{Abilities, Carrier, Executor, Launch, Signal, Target, UnsupportedTarget};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::Echo;
use crate::command::is_command;
use crate::environment::Inherited;
use crate::error::ExecutorError;
use crate::gate::Gate;
use crate::guardian::{
    Guardian, GuardianError, GuardianSpec, Line, Post, is_meant_to_be_guardian, own_program, token,
};
use crate::init::has_definitions;
use crate::launcher::{Job, Launcher};
use crate::mailbox::{ChildId, Letter, Mailbox, lock};
use crate::orphans::Orphanage;
use crate::reactor::Reactor;
use crate::serve::is_meant_to_serve;
use crate::source::Watch;
use crate::sys::make_children_waitable;

/// Longest time that a drop waits for children to end.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// Runs external commands ([`Command`](crate::Command)) and Rust functions, each in a process group of its own.
///
/// A Rust function runs in a child of this same program, which serves it by its name: see
/// [`init_with`](crate::init_with).
///
/// No process outlives its attempt: what is left of the group when its leader has ended is ended too, and
/// only then the end is reported. If this program is killed, its guardian ends all groups. What leaves its
/// group (by `setsid`) is reached by the guardian, and otherwise only with
/// [`adopt_orphans`](ProcessExecutorBuilder::adopt_orphans).
///
/// The commands inherit the environment that this program has when the executor is made. Dropping the
/// executor kills what still runs and waits for it, but not for ever: what even SIGKILL cannot end at once
/// (it waits for a broken disk, say) is left to the guardian.
pub struct ProcessExecutor {
    mailbox: Arc<Mailbox>,
    launcher: Launcher,
    reactor: Thread,
    /// Do Rust functions run in this program?
    serves_itself: bool,
    next_id: AtomicU64,
}

impl ProcessExecutor {
    /// With default options. The program must call [`init`](crate::init()) first in `main`.
    ///
    /// # Errors
    /// [`ExecutorError`] says what is missing.
    pub fn new() -> Result<Self, ExecutorError> {
        Self::builder().build()
    }

    /// With options.
    #[must_use]
    pub fn builder() -> ProcessExecutorBuilder {
        ProcessExecutorBuilder::default()
    }
}

/// Options of a [`ProcessExecutor`].
#[derive(Default)]
pub struct ProcessExecutorBuilder {
    program: Option<PathBuf>,
    echo: Option<Echo>,
    adopts_orphans: bool,
}

impl ProcessExecutorBuilder {
    /// The program to run as the guardian and for Rust functions, instead of this program. It must call
    /// [`init_with`](crate::init_with) with the same definitions as the controller, or [`init`](crate::init())
    /// if there are none.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Gets a copy of everything that the commands write. It is called by the thread that watches all
    /// commands, so it must not block for long.
    #[must_use]
    pub fn echo(mut self, echo: Echo) -> Self {
        self.echo = Some(echo);
        self
    }

    /// Reaches processes that leave their group (as `setsid` and `timeout` make them): they are stopped,
    /// paused and ended like the rest of the attempt.
    ///
    /// For that this process becomes the parent of all orphans among its descendants, for as long as it
    /// lives, and collects those that end. So it is only for a program that starts no processes by other
    /// means from its first thread: an orphan that has also cleared its environment is taken for the only
    /// running attempt's, and ended with it. While several run it is known by the pipes that it holds, or by an
    /// earlier signal that found it below its leader, or else left alone and named in the log, and in the message of
    /// the attempt's end.
    #[must_use]
    pub fn adopt_orphans(mut self) -> Self {
        self.adopts_orphans = true;
        self
    }

    /// Makes the executor and its guardian.
    ///
    /// # Errors
    /// [`ExecutorError`] says what is missing.
    pub fn build(self) -> Result<ProcessExecutor, ExecutorError> {
        if is_meant_to_be_guardian() {
            return Err(ExecutorError::InsideGuardian);
        }
        if is_meant_to_serve() {
            return Err(ExecutorError::InsideServer);
        }
        make_children_waitable();
        let spec = GuardianSpec {
            program: self.program.clone().unwrap_or_else(own_program),
            token: token().map_err(system("get random bytes"))?,
        };
        let inherited = Inherited::capture(&spec.token);
        if inherited.is_nested_too_deep() {
            return Err(ExecutorError::TooDeep);
        }
        let watch = Arc::new(Watch::new().map_err(system("make an epoll descriptor"))?);
        let guardian = start_guardian(&spec, &watch)?;
        let mailbox = Arc::new(Mailbox::new().map_err(system("make an eventfd"))?);
        let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(system("open /dev/null"))?;
        let line = Line::default();
        let program = spec.program.clone();
        let launcher = Launcher::new(
            inherited,
            program,
            null,
            line.clone(),
            Arc::clone(&watch),
            Arc::clone(&mailbox),
        );
        let orphanage = self.adopts_orphans.then(|| Orphanage::open(guardian.pid())).transpose();
        let orphanage = orphanage.map_err(|source| ExecutorError::System {
            what: "become the parent of orphans",
            source,
        })?;
        let post = Post::new(spec, line, guardian, &watch).map_err(system("wait by epoll"))?;
        let reactor = Reactor::new(watch, Arc::clone(&mailbox), post, self.echo, orphanage)
            .map_err(system("wait by epoll"))?;
        let (running, over) = mpsc::channel();
        let id = thread::Builder::new()
            .name("processes".to_owned())
            .spawn(move || {
                reactor.run();
                drop(running);
            })
            .map_err(|source| ExecutorError::System { what: "start a thread", source })?
            .thread()
            .id();
        let reactor = Thread { id, over: Mutex::new(over) };
        Ok(ProcessExecutor {
            mailbox,
            launcher,
            reactor,
            serves_itself: self.program.is_none(),
            next_id: AtomicU64::new(1),
        })
    }
}

impl Executor for ProcessExecutor {
    fn name(&self) -> &'static str {
        "process"
    }

    fn abilities(&self) -> Abilities {
        Abilities { hard_stop: true, isolation: true }
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        match target {
            Target::External(any) if is_command(&**any) => Ok(()),
            Target::External(_) => Err(UnsupportedTarget(
                "the process executor runs Rust functions and its own commands only".to_owned(),
            )),
            Target::Function(_) if self.serves_itself && !has_definitions() => {
                Err(UnsupportedTarget(
                    "a Rust function can run in a process only if the program serves it: call chongming_executor_process::init_with, with the task definitions, first in main".to_owned(),
                ))
            }
            Target::Function(_) => Ok(()),
        }
    }

    fn launch(&self, launch: Launch) -> Arc<dyn Carrier> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let gate = Arc::new(Gate::new());
        let carrier =
            ProcessCarrier { id, gate: Arc::clone(&gate), mailbox: Arc::clone(&self.mailbox) };
        self.launcher.push(Job { id, launch, gate });
        Arc::new(carrier)
    }
}

impl Drop for ProcessExecutor {
    fn drop(&mut self) {
        // A sink may drop the executor from one of its own threads, which cannot wait for itself.
        let own = thread::current().id();
        for launcher in self.launcher.close() {
            if launcher.thread().id() != own {
                let _ = launcher.join();
            }
        }
        self.mailbox.send(Letter::Close);
        if self.reactor.id != own {
            let _ = lock(&self.reactor.over).recv_timeout(LAST_WAIT);
        }
    }
}

/// The reactor's thread. Its channel closes when it ends; nothing is ever sent.
struct Thread {
    id: ThreadId,
    over: Mutex<Receiver<()>>,
}

impl fmt::Debug for ProcessExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessExecutor").finish_non_exhaustive()
    }
}

impl fmt::Debug for ProcessExecutorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessExecutorBuilder")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

struct ProcessCarrier {
    id: ChildId,
    gate: Arc<Gate>,
    mailbox: Arc<Mailbox>,
}

impl Carrier for ProcessCarrier {
    fn signal(&self, signal: Signal) {
        self.gate.signal(self.id, signal, &self.mailbox);
    }
}

fn start_guardian(spec: &GuardianSpec, watch: &Arc<Watch>) -> Result<Guardian, ExecutorError> {
    let guardian =
        Guardian::start(spec, Some(watch)).map_err(|error| guardian_error(spec, error))?;
    match guardian.wait_until_ready() {
        Ok(()) => Ok(guardian),
        Err(error) => {
            guardian.discard();
            Err(guardian_error(spec, error))
        }
    }
}

fn guardian_error(spec: &GuardianSpec, error: GuardianError) -> ExecutorError {
    let program = std::fs::read_link(&spec.program).unwrap_or_else(|_| spec.program.clone());
    match error {
        GuardianError::NoHandshake => ExecutorError::InitNotCalled { program },
        GuardianError::Start(source) => ExecutorError::Guardian { program, source },
    }
}

fn system(what: &'static str) -> impl Fn(Errno) -> ExecutorError {
    move |errno| ExecutorError::System { what, source: io::Error::from(errno) }
}
