//! `posix_spawn`: a child without copying this process.
//!
//! The C library makes the child by `vfork` on Linux, so the cost does not grow with the supervisor's
//! memory, and nothing of ours runs in the child.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, Result, fcntl_dupfd_cloexec};
use rustix::process::Pid;

/// Where the child lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a process group of its own, with every signal at its default.
    OwnGroup,
    /// In a session of its own, with every signal blocked: only SIGKILL and SIGSTOP reach it.
    OwnSessionSignalsBlocked,
}

/// What to start.
pub(crate) struct Spawn<'a> {
    /// Path of the program; no search.
    pub(crate) program: &'a CStr,
    /// Its arguments, its name included.
    pub(crate) argv: &'a [&'a CStr],
    /// Its whole environment, as `NAME=value`.
    pub(crate) env: &'a [&'a CStr],
    /// Its working directory.
    pub(crate) cwd: &'a CStr,
    /// Its descriptors: ours, and the number that it has in the child. All others of ours must be
    /// close-on-exec.
    pub(crate) fds: &'a [(BorrowedFd<'a>, RawFd)],
    /// Where it lives.
    pub(crate) place: Place,
}

/// Above every number that a child's descriptor gets.
const ABOVE_TARGETS: RawFd = 10;

/// Starts a child; returns when its program runs.
///
/// # Errors
/// The error of the first step that failed, in the child as well.
pub(crate) fn spawn(spawn: &Spawn<'_>) -> Result<Pid> {
    spawn_if(spawn, || Some(()))?.map(|(pid, ())| pid).ok_or(Errno::INVAL)
}

/// The same, if that may be: asked when nothing is left to be done but the call. The yes comes back with the child.
///
/// # Errors
/// As [`spawn`].
pub(crate) fn spawn_if<T>(
    spawn: &Spawn<'_>,
    may: impl FnOnce() -> Option<T>,
) -> Result<Option<(Pid, T)>> {
    let mut attributes = Attributes::new()?;
    attributes.set(spawn.place)?;
    let mut actions = Actions::new()?;
    actions.change_dir(spawn.cwd)?;
    // A source on a low number could be overwritten by an earlier step, or be its own target and so keep
    // its close-on-exec mark: such sources are moved up first.
    let mut moved: Vec<OwnedFd> = Vec::new();
    for (source, target) in spawn.fds {
        let mut number = source.as_raw_fd();
        if number < ABOVE_TARGETS {
            let copy = fcntl_dupfd_cloexec(source, ABOVE_TARGETS)?;
            number = copy.as_raw_fd();
            moved.push(copy);
        }
        actions.dup(number, *target)?;
    }
    let argv = pointers(spawn.argv);
    let env = pointers(spawn.env);
    let mut pid: libc::pid_t = 0;
    let Some(yes) = may() else { return Ok(None) };
    // SAFETY: every pointer is valid for the call; both lists end in null and their strings outlive it;
    // attributes and actions are initialised.
    let code = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            spawn.program.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    drop(moved);
    check(code)?;
    Pid::from_raw(pid).map(|pid| Some((pid, yes))).ok_or(Errno::INVAL)
}

/// Makes sure that ended children can be waited for: a parent that ignores SIGCHLD hands that down, and
/// then exit codes are lost.
pub(crate) fn make_children_waitable() {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the disposition into a buffer of the right type; an all-zero one is valid.
    let now = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    if now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0 {
        // SAFETY: the default disposition runs no code.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Writing to a pipe that nobody reads is an error for this thread, and never the end of the program,
/// whatever the program has done with SIGPIPE.
pub(crate) fn block_sigpipe() {
    let mut set = signal_set(libc::sigemptyset);
    // SAFETY: the set is initialised and valid for both calls.
    unsafe {
        libc::sigaddset(&raw mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Lets the signals through that ask a program to end. A parent that blocks them hands that down, and then nobody
/// can ask.
pub(crate) fn unblock_ends() {
    let mut set = signal_set(libc::sigemptyset);
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: the set is initialised.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    // SAFETY: the set is initialised and valid for the call.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

fn pointers(strings: &[&CStr]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|s| s.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

fn check(code: libc::c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(code)) }
}

/// An initialised `posix_spawnattr_t`.
struct Attributes(Box<MaybeUninit<libc::posix_spawnattr_t>>);

impl Attributes {
    fn new() -> Result<Self> {
        let mut raw = Box::new(MaybeUninit::uninit());
        // SAFETY: initialises the structure behind a valid pointer.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        Ok(Self(raw))
    }

    fn set(&mut self, place: Place) -> Result<()> {
        let all = signal_set(libc::sigfillset);
        let (mask, place_flag) = match place {
            Place::OwnGroup => (signal_set(libc::sigemptyset), libc::POSIX_SPAWN_SETPGROUP as i16),
            Place::OwnSessionSignalsBlocked => (all, libc::POSIX_SPAWN_SETSID),
        };
        let flags =
            (libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF) as i16 | place_flag;
        let raw = self.0.as_mut_ptr();
        // SAFETY: `raw` is initialised, the sets are valid for the calls and copied by them.
        unsafe {
            check(libc::posix_spawnattr_setpgroup(raw, 0))?;
            check(libc::posix_spawnattr_setsigmask(raw, &raw const mask))?;
            check(libc::posix_spawnattr_setsigdefault(raw, &raw const all))?;
            check(libc::posix_spawnattr_setflags(raw, flags))
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

/// An initialised `posix_spawn_file_actions_t`. The C library copies what it is given.
struct Actions(Box<MaybeUninit<libc::posix_spawn_file_actions_t>>);

impl Actions {
    fn new() -> Result<Self> {
        let mut raw = Box::new(MaybeUninit::uninit());
        // SAFETY: initialises the structure behind a valid pointer.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        Ok(Self(raw))
    }

    fn change_dir(&mut self, dir: &CStr) -> Result<()> {
        // SAFETY: initialised by `new`; the path is a valid C string.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(self.0.as_mut_ptr(), dir.as_ptr())
        })
    }

    fn dup(&mut self, source: RawFd, target: RawFd) -> Result<()> {
        // SAFETY: initialised by `new`; the numbers are only recorded.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(self.0.as_mut_ptr(), source, target)
        })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

fn signal_set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `fill` is sigemptyset or sigfillset, which initialise the whole set.
    unsafe {
        fill(set.as_mut_ptr());
        set.assume_init()
    }
}
