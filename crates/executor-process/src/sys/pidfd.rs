//! `pidfd_send_signal` with flags, which rustix lacks.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::io::{Errno, Result};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

/// `PIDFD_SIGNAL_PROCESS_GROUP`, since Linux 6.9.
const PROCESS_GROUP: libc::c_uint = 1 << 2;

/// Sends `signal` to the group that the process behind `pidfd` led or leads; 0 only looks.
///
/// The descriptor pins the group's identity: no later owner of the number can be hit, also when the
/// leader was reaped long ago. `SRCH` means that the group has no member at all.
pub(crate) fn signal_group(pidfd: BorrowedFd<'_>, signal: libc::c_int) -> Result<()> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is borrowed for the call, and a null siginfo is allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            no_info,
            PROCESS_GROUP,
        )
    };
    if result == 0 {
        return Ok(());
    }
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    Err(Errno::from_raw_os_error(code))
}

/// Does this kernel know [`signal_group`]? Asked once.
pub(crate) fn can_signal_group() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let own: Pid = getpid();
        let Ok(pidfd) = pidfd_open(own, PidfdFlags::empty()) else { return false };
        // We may lead no group, so "no such process" is a yes as well.
        use std::os::fd::AsFd;
        matches!(signal_group(pidfd.as_fd(), 0), Ok(()) | Err(Errno::SRCH | Errno::PERM))
    })
}
