//! Descriptors that this process was started with.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Was standard output closed when this program was started? Rust's runtime puts `/dev/null` in its place
/// before `main`, where nobody could miss what is written.
pub fn was_stdout_closed() -> bool {
    WAS_STDOUT_CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look_at_stdout() {
    // SAFETY: only asks, and any number may be asked about.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    WAS_STDOUT_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Runs before Rust's runtime does.
// SAFETY: the section is a list of functions of this type, and this one needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = look_at_stdout;

/// The inode of what an inherited descriptor leads to.
pub(crate) fn inode_of_inherited(number: RawFd) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: any number may be asked about; the buffer is of the right type, and an all-zero one is valid.
    let (code, stat) = unsafe { (libc::fstat(number, stat.as_mut_ptr()), stat.assume_init()) };
    (code == 0).then_some(stat.st_ino)
}

/// Takes an inherited descriptor over: it is closed with its owner, and no program that this one starts
/// gets it. To be called once for a number, before this program makes descriptors of its own.
pub(crate) fn take_inherited(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: only sets a mark, which fails for a number that is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return None;
    }
    // SAFETY: it is open, and nothing in this program owns it, since it was there before.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
