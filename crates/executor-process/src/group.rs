//! A handle on a child's process group.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, RawPid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid,
    kill_process_group, pidfd_open, pidfd_send_signal, waitid, waitpid,
};

use crate::exit::Exit;
use crate::procfs;
use crate::sys;

/// The group that a child of ours leads.
///
/// A signal never reaches a later owner of the number. On Linux 6.9 and later the leader's pidfd pins the
/// group. Before, the leader stays unreaped for as long as the group is signalled, which reserves the
/// number.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    pidfd: Arc<OwnedFd>,
    pinned_by_pidfd: bool,
    reaped: bool,
}

impl Group {
    /// The group of a child that was just started with [`sys::Place::OwnGroup`] and not waited for.
    ///
    /// # Errors
    /// It cannot be watched; then it was ended.
    pub(crate) fn of_new_child(leader: Pid) -> rustix::io::Result<Self> {
        let pidfd = pidfd_open(leader, PidfdFlags::empty()).inspect_err(|_| {
            // Still our unreaped child, so the number is its own.
            let _ = kill_process_group(leader, Signal::KILL);
            let _ = waitpid(Some(leader), WaitOptions::empty());
        })?;
        let pinned_by_pidfd = sys::can_signal_group();
        Ok(Self { leader, pidfd: Arc::new(pidfd), pinned_by_pidfd, reaped: false })
    }

    /// The leader's id, which is the group's.
    pub(crate) const fn leader(&self) -> Pid {
        self.leader
    }

    /// Readable when the leader has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The same for whoever needs it later.
    pub(crate) fn shared_pidfd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.pidfd)
    }

    /// Sends a signal to every member, and to a leader that has left its group.
    ///
    /// # Errors
    /// `SRCH` when there is none, `PERM` when none of them may be signalled.
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self.signal_members(signal) {
            Ok(()) if signal != Signal::KILL && !self.has_leader_left() => Ok(()),
            Err(Errno::PERM) if !self.has_leader_left() => Err(Errno::PERM),
            sent => sent.or(pidfd_send_signal(&self.pidfd, signal)),
        }
    }

    /// Does the leader live on in another group? As long as it was not collected, the number is its own.
    fn has_leader_left(&self) -> bool {
        !self.reaped
            && getpgid(Some(self.leader)).is_ok_and(|group| group != self.leader)
            && self.peek_exit().is_none()
    }

    fn signal_members(&self, signal: Signal) -> rustix::io::Result<()> {
        if self.pinned_by_pidfd {
            sys::signal_group(self.pidfd.as_fd(), signal.as_raw())
        } else if self.reaped {
            Err(Errno::SRCH)
        } else {
            kill_process_group(self.leader, signal)
        }
    }

    /// How the leader ended, if it has. Leaves it unreaped.
    pub(crate) fn peek_exit(&self) -> Option<Exit> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    }

    /// Is the leader stopped (state T)?
    pub(crate) fn is_leader_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::PidFd(self.pidfd.as_fd()), options), Ok(Some(_)))
    }

    /// To be called once the leader has ended: lets go of it where the pidfd alone pins the group.
    pub(crate) fn leader_ended(&mut self) {
        if self.pinned_by_pidfd {
            self.reap();
        }
    }

    /// The members that have not ended.
    pub(crate) fn living(&self) -> Vec<RawPid> {
        if self.pinned_by_pidfd && sys::signal_group(self.pidfd.as_fd(), 0) == Err(Errno::SRCH) {
            return Vec::new();
        }
        // What is left may be nothing but zombies.
        procfs::living_members(self.leader).collect()
    }

    /// Collects the leader, so that no zombie stays.
    pub(crate) fn reap(&mut self) {
        if !self.reaped {
            self.wait(WaitIdOptions::EXITED);
            self.reaped = true;
        }
    }

    /// Ends it, and collects the leader; `false` when the leader is nobody that we may signal.
    pub(crate) fn end(&mut self) -> bool {
        let _ = self.signal(Signal::KILL);
        if pidfd_send_signal(&self.pidfd, Signal::KILL).is_err() {
            return false;
        }
        let id = || WaitId::PidFd(self.pidfd.as_fd());
        while let Err(Errno::INTR) = waitid(id(), WaitIdOptions::EXITED) {}
        self.reaped = true;
        true
    }

    fn wait(&self, options: WaitIdOptions) -> Option<Exit> {
        let id = WaitId::PidFd(self.pidfd.as_fd());
        match waitid(id, options | WaitIdOptions::NOHANG) {
            Ok(Some(status)) => Some(Exit::from_status(&status)),
            Ok(None) | Err(Errno::INTR) => None,
            Err(_) => Some(Exit::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::ffi::CStr;

    /// Starts a shell whose output comes back; returns when it has written its first byte.
    fn shell(script: &CStr, pinned_by_pidfd: bool) -> (Group, OwnedFd) {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let leader = sys::spawn(&sys::Spawn {
            program: c"/bin/sh",
            argv: &[c"sh", c"-c", script],
            env: &[c"PATH=/usr/bin:/bin"],
            cwd: c"/",
            fds: &[(writer.as_fd(), 1)],
            place: sys::Place::OwnGroup,
        })
        .unwrap();
        drop(writer);
        let group = Group { pinned_by_pidfd, ..Group::of_new_child(leader).unwrap() };
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]).unwrap(), 1);
        (group, reader)
    }

    fn wait_for_end(group: &Group) -> Exit {
        poll(&mut [PollFd::from_borrowed_fd(group.pidfd(), PollFlags::IN)], None).unwrap();
        group.peek_exit().unwrap()
    }

    #[test]
    fn old_and_new_kernels_give_the_same_answers() {
        for pinned in [false, sys::can_signal_group()] {
            let (mut group, end_of_all) =
                shell(c"trap 'exit 3' USR1; sleep 1000 & echo; wait", pinned);
            assert_eq!(group.peek_exit(), None);
            group.signal(Signal::CONT).unwrap();
            rustix::process::pidfd_send_signal(&group.pidfd, Signal::USR1).unwrap();
            assert_eq!(wait_for_end(&group), Exit::Code(3));
            group.leader_ended();
            assert!(!group.living().is_empty(), "the sleep lives");
            group.signal(Signal::KILL).unwrap();
            assert_eq!(rustix::io::read(&end_of_all, &mut [0; 8]).unwrap(), 0);
            while !group.living().is_empty() {
                std::thread::yield_now();
            }
            group.reap();
            assert!(group.living().is_empty());
        }
    }

    #[test]
    fn a_leader_that_leaves_its_group_is_reached() {
        // It goes into the group of its own child, and of a parent, with a member that stays behind.
        let leaders = [
            c"exec perl -e 'my ($p, $m) = (fork, $$); if (!$p) { setpgrp(0, 0); \
              select undef, undef, undef, 0.01 while getppid == $m; exit } \
              until (getpgrp($p) == $p) {} setpgrp(0, $p) or die; syswrite STDOUT, 1; sleep 1000'",
            c"exec perl -e 'if (!fork) { $SIG{TERM} = sub {}; sleep 1000 while 1 } \
              setpgrp(0, getpgrp(getppid)) or die; syswrite STDOUT, 1; sleep 1000'",
        ];
        for (leader, pinned) in leaders
            .into_iter()
            .flat_map(|leader| [false, sys::can_signal_group()].map(|pinned| (leader, pinned)))
        {
            let (mut group, _output) = shell(leader, pinned);
            assert!(group.has_leader_left());
            group.signal(Signal::STOP).unwrap();
            while !group.is_leader_stopped() {
                std::thread::yield_now();
            }
            group.signal(Signal::TERM).unwrap();
            group.signal(Signal::CONT).unwrap();
            assert_eq!(wait_for_end(&group), Exit::Signal(15));
            assert!(!group.has_leader_left(), "it is nowhere");
            group.end();
        }
    }

    #[test]
    fn a_leader_in_its_group_is_signalled_with_it_alone() {
        let (mut group, _output) = shell(c"echo; exec sleep 1000", sys::can_signal_group());
        assert!(!group.has_leader_left());
        group.signal(Signal::TERM).unwrap();
        assert_eq!(wait_for_end(&group), Exit::Signal(15));
        group.leader_ended();
        assert!(!group.has_leader_left());
        group.reap();
    }
}
