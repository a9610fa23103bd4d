//! The guardian: a second process that ends all children when the supervisor is killed.
//!
//! It is this same program, run again with a variable in its environment that [`init`](crate::init()) looks for, in a
//! session of its own and deaf to every signal but SIGKILL. A socket joins the two. The supervisor passes a
//! pidfd for each group that it starts; when the supervisor is gone, the guardian reads the end of the
//! stream and kills what is left: the groups it was told of, then everything that carries the executor's
//! mark in its environment.
//!
//! A child shares the supervisor's end of the socket until it has become its own program, so the end of the
//! stream comes only after each launch has either happened or failed. Hence nothing slips through, however
//! close to a launch the supervisor dies.

mod helper;
mod line;
mod outbox;
mod post;
mod wire;

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_getfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::Timespec;

use crate::error::GUARDIAN;
use crate::group::Group;
use crate::source::Watch;
use crate::sys::{Place, Spawn, spawn};
pub(crate) use line::Line;
use outbox::{Outbox, Told};
pub(crate) use post::Post;
use wire::Message;

/// Longest time that the re-run program may take to call [`init`](crate::init()).
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Longest time that one which was relieved may take.
const LAST_WORK: Duration = Duration::from_secs(10);

/// Acts as a guardian, and never returns, if this process was started as one.
pub(crate) fn run_if_asked() {
    if let Some(token) = std::env::var_os(GUARDIAN) {
        helper::run(&token.to_string_lossy());
    }
}

/// Is this process meant to be a guardian, but did not call [`init`](crate::init())?
pub(crate) fn is_meant_to_be_guardian() -> bool {
    std::env::var_os(GUARDIAN).is_some()
}

/// Why there is no guardian.
#[derive(Debug)]
pub(crate) enum GuardianError {
    /// The program ran again but never reached [`init`](crate::init()).
    NoHandshake,
    /// It could not be started.
    Start(io::Error),
}

impl fmt::Display for GuardianError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHandshake => f.write_str("it did not call init"),
            Self::Start(error) => write!(f, "{error}"),
        }
    }
}

impl From<Errno> for GuardianError {
    fn from(errno: Errno) -> Self {
        Self::Start(errno.into())
    }
}

/// 128 random bits, in hexadecimal: what marks the processes that one guardian ends.
pub(crate) fn token() -> rustix::io::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// How to start a guardian.
#[derive(Clone, Debug)]
pub(crate) struct GuardianSpec {
    /// The program to run again.
    pub(crate) program: PathBuf,
    /// The executor that it guards.
    pub(crate) token: String,
}

/// Tells the guardians of this process apart.
pub(crate) type GuardianNumber = u64;

/// The supervisor's end of a running guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    number: GuardianNumber,
    outbox: Outbox,
    pid: Pid,
    pidfd: OwnedFd,
}

impl Guardian {
    /// Starts one, whose socket the reactor watches while it is full. It is not known yet whether the program calls
    /// [`init`](crate::init()).
    pub(crate) fn start(
        spec: &GuardianSpec,
        watch: Option<&Arc<Watch>>,
    ) -> Result<Self, GuardianError> {
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let program = c_string(spec.program.as_os_str().as_bytes())?;
        let mut env = Vec::new();
        for (name, value) in std::env::vars_os() {
            if name != GUARDIAN {
                env.push(c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat())?);
            }
        }
        env.push(c_string(format!("{GUARDIAN}={}", spec.token).as_bytes())?);
        let env: Vec<_> = env.iter().map(CString::as_c_str).collect();
        let pid = spawn(&Spawn {
            program: &program,
            argv: &[c"chongming-guardian"],
            env: &env,
            cwd: c"/",
            fds: &[(theirs.as_fd(), 0), (null.as_fd(), 1), (null.as_fd(), 2)],
            place: Place::OwnSessionSignalsBlocked,
        })?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { number, outbox: Outbox::new(socket, watch.cloned()), pid, pidfd })
    }

    /// Waits until it says that it guards.
    pub(crate) fn wait_until_ready(&self) -> Result<(), GuardianError> {
        let deadline = Instant::now() + HANDSHAKE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(GuardianError::NoHandshake);
            }
            let mut fds = [PollFd::new(self.outbox.socket(), PollFlags::IN)];
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) if wire::receive_hello(self.outbox.socket().as_fd()) => return Ok(()),
                Ok(_) => return Err(GuardianError::NoHandshake),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Readable when it has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Its number.
    pub(crate) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Tells it apart from others.
    pub(crate) const fn number(&self) -> GuardianNumber {
        self.number
    }

    /// Tells it of a launch, and waits a moment if it is late. One that stands still is killed: another one takes its
    /// place.
    pub(crate) fn announce(&self, pipe: u64) {
        match self.outbox.tell_patiently(Message::Launching(pipe)) {
            Told::Yes => {}
            Told::StandsStill => self.kill(),
        }
    }

    /// Tells it of a launch that is under way.
    pub(crate) fn launching(&self, pipe: u64) {
        self.outbox.tell(Message::Launching(pipe), None);
    }

    /// Tells it that a launch has failed.
    pub(crate) fn not_launched(&self, pipe: u64) {
        self.outbox.tell(Message::NotLaunched(pipe), None);
    }

    /// Tells it of a group, which was given this pipe.
    pub(crate) fn register(&self, group: &Group, pipe: u64) {
        let message = Message::Started(group.leader(), pipe);
        self.outbox.tell(message, Some(group.shared_pidfd()));
    }

    /// Tells it that a group is empty.
    pub(crate) fn unregister(&self, leader: Pid) {
        self.outbox.tell(Message::Ended(leader), None);
    }

    /// Sends what it has yet to be told and its socket takes.
    pub(crate) fn flush(&self) {
        self.outbox.flush();
    }

    /// Leaves the rest to it, as when the supervisor dies: it ends whatever is left, and then itself.
    pub(crate) fn relieve(&self) {
        self.outbox.close();
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::CONT);
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let _ = poll(&mut fds, Timespec::try_from(LAST_WORK).ok().as_ref());
        self.discard();
    }

    /// Ends it at once: there is nothing left to guard, or it is of no use.
    pub(crate) fn discard(&self) {
        self.kill();
        self.outbox.close();
        let id = || WaitId::PidFd(self.pidfd.as_fd());
        while let Err(Errno::INTR) = waitid(id(), WaitIdOptions::EXITED) {}
    }

    fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

/// This very program, also when its file was replaced or deleted meanwhile.
pub(crate) fn own_program() -> PathBuf {
    Path::new("/proc/self/exe").to_owned()
}

fn c_string(bytes: &[u8]) -> Result<CString, GuardianError> {
    CString::new(bytes).map_err(|error| GuardianError::Start(io::Error::other(error)))
}

/// Is our standard input what a guardian gets?
fn has_socket() -> bool {
    let stdin = io::stdin();
    fcntl_getfd(&stdin).is_ok() && rustix::net::sockopt::socket_type(&stdin).is_ok()
}
