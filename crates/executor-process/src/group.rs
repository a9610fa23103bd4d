//! A handle on a child's process group.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
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
    pidfd: OwnedFd,
    pinned_by_pidfd: bool,
    reaped: bool,
}

impl Group {
    /// The group of a child that was just started with [`sys::Place::OwnGroup`] and not waited for.
    pub(crate) fn of_new_child(leader: Pid) -> rustix::io::Result<Self> {
        let pidfd = pidfd_open(leader, PidfdFlags::empty())?;
        Ok(Self { leader, pidfd, pinned_by_pidfd: sys::can_signal_group(), reaped: false })
    }

    /// The leader's id, which is the group's.
    pub(crate) const fn leader(&self) -> Pid {
        self.leader
    }

    /// Readable when the leader has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends a signal to every member.
    ///
    /// # Errors
    /// `SRCH` when there is none, `PERM` when none of them may be signalled.
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
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

    /// Has every member ended? The leader must have.
    pub(crate) fn is_empty(&self) -> bool {
        if self.pinned_by_pidfd && sys::signal_group(self.pidfd.as_fd(), 0) == Err(Errno::SRCH) {
            return true;
        }
        // What is left may be nothing but zombies.
        !procfs::group_has_living_member(self.leader)
    }

    /// Collects the leader, so that no zombie stays.
    pub(crate) fn reap(&mut self) {
        if !self.reaped {
            self.wait(WaitIdOptions::EXITED);
            self.reaped = true;
        }
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
