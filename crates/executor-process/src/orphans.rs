//! Processes that left their attempt's group, and what becomes of them when their parents end.
//!
//! A process that leaves its group (`setsid` does, and `timeout`) is not reached by the group's signals. While
//! the leader lives, such a process is among its descendants. Afterwards it is the child of whoever adopts
//! orphans: of this process, if it asked for that; then the attempt's mark in its environment tells whose it
//! is. One that has lost the mark is known by the attempt's pipes, because it was met before, or because nothing else
//! can be its origin; else nobody knows, and that is said.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, RawPid, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitid,
};

use crate::environment::{environment_of, is_marked};
use crate::mailbox::ChildId;
use crate::procfs::{Stat, children_of, holds_pipe};
use crate::survivors::may_signal;

/// How often a process that shows no environment is looked at again.
const MAX_LOOKS: u32 = 100;

/// A process by its number and its start: no other one ever has both.
type Identity = (RawPid, u64);

/// This process as the parent of orphans. The kernel makes them children of its first thread.
#[derive(Debug)]
pub(crate) struct Orphanage {
    own: RawPid,
    /// Nothing but attempts can have left an orphan to us.
    is_exclusive: bool,
    /// Kept open: it is read at the end of each attempt, and mostly found empty.
    children: File,
    /// Whose each living process is that was met out of its group, when that was plain.
    met: HashMap<Identity, ChildId>,
}

/// Of which attempt escaped processes are looked for.
pub(crate) struct Whose<'a> {
    /// The attempt.
    pub(crate) id: ChildId,
    /// The leader, which is the number of the group.
    pub(crate) leader: Pid,
    /// Is the leader's number still its own?
    pub(crate) leader_lives: bool,
    /// A moment before it was started, as time since boot.
    pub(crate) since: Duration,
    /// A child of ours that is nobody's orphan.
    pub(crate) guardian: Option<Pid>,
    /// The executor's mark.
    pub(crate) token: &'a str,
    /// The attempt's mark.
    pub(crate) mark: &'a dyn Fn() -> String,
    /// The attempt's pipes, by their inodes.
    pub(crate) pipes: &'a dyn Fn() -> HashSet<u64>,
    /// The leaders of all attempts.
    pub(crate) leaders: &'a HashSet<RawPid>,
    /// Is there no other attempt?
    pub(crate) is_alone: bool,
}

/// What was found of an attempt outside of its group.
#[derive(Default)]
pub(crate) struct Escaped {
    /// Living processes of it that we may signal.
    pub(crate) found: Vec<OwnedFd>,
    /// Living processes of it that we may not signal.
    pub(crate) out_of_reach: Vec<RawPid>,
    /// Living processes that may be of it or of another attempt.
    pub(crate) unknown: Vec<RawPid>,
}

impl Orphanage {
    /// Makes this process adopt all orphans among its descendants, for as long as it lives.
    ///
    /// # Errors
    /// The system refuses, or does not tell which children a process has.
    pub(crate) fn open(guardian: Pid) -> io::Result<Self> {
        let own = getpid().as_raw_nonzero().get();
        let children = File::open(format!("/proc/{own}/task/{own}/children"))?;
        set_child_subreaper(Some(getpid()))?;
        // The first process of a system gets everybody's orphans, and one that had children before (as after
        // `exec` in a shell) gets theirs.
        let mut orphanage = Self { own, is_exclusive: false, children, met: HashMap::new() };
        orphanage.is_exclusive = own != 1 && orphanage.orphans(Some(guardian)).is_empty();
        Ok(orphanage)
    }

    /// Our children that may be orphans.
    fn orphans(&self, guardian: Option<Pid>) -> Vec<RawPid> {
        let mut list = Vec::new();
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = self.children.read_at(&mut part, list.len() as u64) {
            list.extend_from_slice(part.get(..length).unwrap_or_default());
        }
        let guardian = guardian.map(|pid| pid.as_raw_nonzero().get());
        String::from_utf8_lossy(&list)
            .split_ascii_whitespace()
            .filter_map(|child| child.parse().ok())
            .filter(|child| Some(*child) != guardian)
            .collect()
    }

    /// The living processes of an attempt that are not in its group.
    pub(crate) fn escaped(&mut self, whose: &Whose<'_>) -> Escaped {
        let group = whose.leader.as_raw_nonzero().get();
        let mut walk = Walk {
            group,
            since: whose.since,
            seen: HashSet::new(),
            parents: Vec::new(),
            met: Vec::new(),
            found: Vec::new(),
            out_of_reach: Vec::new(),
        };
        let mut unknown = Vec::new();
        let orphans = self.orphans(whose.guardian);
        if !orphans.is_empty() {
            let mark = (whose.mark)();
            for orphan in orphans {
                walk.visit(orphan, self.own, |stat| {
                    if let Some(id) = self.met.get(&(orphan, stat.start_time)) {
                        return *id == whose.id;
                    }
                    match bears(orphan, &mark, whose.token) {
                        Bears::Mark => true,
                        Bears::AnotherMark => false,
                        // Not one that has left its group.
                        Bears::Nothing if whose.leaders.contains(&stat.group) => {
                            stat.group == group
                        }
                        Bears::Nothing if self.is_exclusive && whose.is_alone => true,
                        Bears::Nothing if holds_pipe(orphan, &(whose.pipes)()) => true,
                        Bears::Nothing => {
                            if stat.started_by() >= whose.since {
                                unknown.push(orphan);
                            }
                            false
                        }
                    }
                });
            }
        }
        if whose.leader_lives {
            walk.parents.push(group);
        }
        while let Some(parent) = walk.parents.pop() {
            for child in children_of(parent) {
                walk.visit(child, parent, |_| true);
            }
        }
        if !self.is_exclusive {
            // Most likely they have nothing to do with us.
            unknown.clear();
        }
        self.met.extend(walk.met.into_iter().map(|process| (process, whose.id)));
        Escaped { found: walk.found, out_of_reach: walk.out_of_reach, unknown }
    }

    /// Collects orphans that have ended, but for children that others wait for, and forgets what is gone.
    pub(crate) fn reap(&mut self, guardian: Option<Pid>, is_waited_for: impl Fn(RawPid) -> bool) {
        for orphan in self.orphans(guardian) {
            let has_ended = || Stat::of(orphan).is_some_and(|stat| stat.is_zombie());
            if let Some(pid) = Pid::from_raw(orphan).filter(|_| !is_waited_for(orphan))
                && has_ended()
            {
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
        self.met.retain(|(pid, start), _| Stat::of(*pid).is_some_and(|s| s.start_time == *start));
    }
}

/// Sends a signal to each.
pub(crate) fn signal(processes: &[OwnedFd], signal: Signal) {
    for process in processes {
        let _ = pidfd_send_signal(process, signal);
    }
}

/// Whose mark a process bears.
enum Bears {
    Mark,
    AnotherMark,
    Nothing,
}

/// Which mark does this process bear? One that is just becoming another program shows no environment for a
/// moment, and one that is exiting none any more: that one may be ours, and it costs nothing to wait until it
/// is gone.
fn bears(pid: RawPid, mark: &str, token: &str) -> Bears {
    for _ in 0..MAX_LOOKS {
        match environment_of(pid) {
            Some(environment) if environment.is_empty() => {
                if Stat::of(pid).is_some_and(|stat| stat.is_exiting()) {
                    return Bears::Mark;
                }
                thread::yield_now();
            }
            Some(environment) if is_marked(&environment, mark) => return Bears::Mark,
            Some(environment) if is_marked(&environment, token) => return Bears::AnotherMark,
            Some(_) => return Bears::Nothing,
            None if Stat::of(pid).is_some_and(|stat| stat.is_exiting()) => return Bears::Mark,
            None => return Bears::Nothing,
        }
    }
    Bears::Nothing
}

struct Walk {
    group: RawPid,
    since: Duration,
    seen: HashSet<RawPid>,
    /// Whose children are still to be visited.
    parents: Vec<RawPid>,
    met: Vec<Identity>,
    found: Vec<OwnedFd>,
    out_of_reach: Vec<RawPid>,
}

impl Walk {
    /// Takes a process in, with its children to come, if it is still this parent's and is one of ours.
    fn visit(&mut self, process: RawPid, parent: RawPid, is_ours: impl FnOnce(&Stat) -> bool) {
        let Some(pid) = Pid::from_raw(process).filter(|_| self.seen.insert(process)) else {
            return;
        };
        // The descriptor comes first: what is read afterwards belongs to the same process if that still
        // lives when it is signalled.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        let Some(stat) = Stat::of(process) else { return };
        if stat.parent != parent || stat.is_zombie() || !is_ours(&stat) {
            return;
        }
        self.parents.push(process);
        if stat.group == self.group {
            return;
        }
        self.met.push((process, stat.start_time));
        if may_signal(process) {
            self.found.push(pidfd);
        } else if stat.started_by() >= self.since {
            // One that an earlier attempt has left goes on beside all that come after it.
            self.out_of_reach.push(process);
        }
    }
}
