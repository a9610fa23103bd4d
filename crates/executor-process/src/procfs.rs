//! What `/proc` says about processes.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, RawPid};
use rustix::time::{ClockId, clock_gettime};

/// The fields of `/proc/<pid>/stat` that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// One letter: `R`, `S`, `T`, `Z`, …
    pub(crate) state: u8,
    /// Its parent.
    pub(crate) parent: RawPid,
    /// Its process group.
    pub(crate) group: RawPid,
    /// Kernel flags.
    pub(crate) flags: u64,
    /// Threads that are not gone without a trace; the first one stays as long as others do.
    pub(crate) threads: u64,
    /// Start, in clock ticks since boot.
    pub(crate) start_time: u64,
}

/// `PF_EXITING`.
const EXITING: u64 = 0x0000_0004;
/// `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Reads it; `None` when the process is gone.
    pub(crate) fn of(pid: RawPid) -> Option<Self> {
        let mut text = [0; 1024];
        let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut text).ok()?;
        Self::parse(text.get(..length)?)
    }

    /// The name in the second field may hold anything, so the rest begins after the last `)`.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            flags: fields.nth(3)?.parse().ok()?,
            threads: fields.nth(10)?.parse().ok()?,
            start_time: fields.nth(1)?.parse().ok()?,
        })
    }

    /// No later than this it was started, as time since boot.
    pub(crate) fn started_by(&self) -> Duration {
        const SECOND: u64 = 1_000_000_000;
        let tick = SECOND / clock_ticks_per_second().max(1);
        Duration::from_nanos(self.start_time.saturating_add(1).saturating_mul(tick))
    }

    /// Has it ended, but for being waited for? One whose first thread has ended goes on with the others.
    pub(crate) const fn is_zombie(&self) -> bool {
        self.has_ended_first_thread() && self.threads <= 1
    }

    /// Is it on its way to be one? Its memory is gone by then.
    pub(crate) const fn is_exiting(&self) -> bool {
        self.flags & EXITING != 0 && self.threads <= 1
    }

    const fn has_ended_first_thread(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Is it a thread of the kernel?
    pub(crate) const fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

/// The time since boot, also while the machine slept.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// The children that one thread of a process has started or adopted. Empty where the kernel does not tell.
fn children_of_thread(pid: RawPid, thread: RawPid) -> Vec<RawPid> {
    fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// The children of a process.
pub(crate) fn children_of(pid: RawPid) -> Vec<RawPid> {
    threads_of(pid).flat_map(|thread| children_of_thread(pid, thread)).collect()
}

/// The ids of all processes that can be seen.
pub(crate) fn all_pids() -> impl Iterator<Item = RawPid> {
    numbers_in("/proc")
}

/// The ids of a process's threads.
fn threads_of(pid: RawPid) -> impl Iterator<Item = RawPid> {
    numbers_in(&format!("/proc/{pid}/task"))
}

fn numbers_in(folder: &str) -> impl Iterator<Item = RawPid> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Where a process shows what it has: under its number, or under its other threads once the first has ended.
pub(crate) fn folders_of(pid: RawPid) -> Vec<String> {
    if Stat::of(pid).is_some_and(|stat| stat.has_ended_first_thread() && !stat.is_zombie()) {
        let others = threads_of(pid).filter(|thread| *thread != pid);
        others.map(|thread| format!("/proc/{pid}/task/{thread}")).collect()
    } else {
        vec![format!("/proc/{pid}")]
    }
}

/// The members of this group that have not ended.
pub(crate) fn living_members(group: Pid) -> impl Iterator<Item = RawPid> {
    let group = group.as_raw_nonzero().get();
    let is_member = move |stat: Stat| stat.group == group && !stat.is_zombie();
    all_pids().filter(move |pid| Stat::of(*pid).is_some_and(is_member))
}

/// Does the process hold a pipe with one of these inodes?
pub(crate) fn holds_pipe(pid: RawPid, pipes: &HashSet<u64>) -> bool {
    let folders = folders_of(pid).into_iter();
    let descriptors = folders.filter_map(|folder| fs::read_dir(format!("{folder}/fd")).ok());
    let entries = descriptors.flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| {
        let inode = target.to_str().and_then(|t| t.strip_prefix("pipe:[")?.strip_suffix(']'));
        inode.and_then(|inode| inode.parse().ok()).is_some_and(|inode| pipes.contains(&inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_does_not_confuse() {
        let line = b"42 (a) Z 1 (b)) T 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8813 2 3";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: b'T',
                parent: 1,
                group: 77,
                flags: 4_194_560,
                threads: 1,
                start_time: 8813
            }
        );
        assert_eq!(Stat::parse(b"42 (cut off"), None);
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        let stat = |state, threads, flags| Stat {
            state,
            parent: 1,
            group: 1,
            flags,
            threads,
            start_time: 1,
        };
        for (state, threads, is_zombie) in
            [(b'S', 1, false), (b'Z', 1, true), (b'Z', 2, false), (b'X', 0, true)]
        {
            assert_eq!(stat(state, threads, 0).is_zombie(), is_zombie, "{state} {threads}");
        }
        assert!(stat(b'Z', 1, EXITING).is_exiting() && !stat(b'Z', 2, EXITING).is_exiting());
    }

    #[test]
    fn this_process_is_seen() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let stat = Stat::of(own).unwrap();
        assert!(!stat.is_zombie() && !stat.is_kernel_thread() && stat.start_time > 0);
        assert!(all_pids().any(|pid| pid == own));
        assert!(living_members(rustix::process::getpgrp()).next().is_some());
    }

    #[test]
    fn the_holder_of_a_pipe_is_recognised() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let inode = rustix::fs::fstat(&writer).unwrap().st_ino;
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(holds_pipe(own, &HashSet::from([1, inode])));
        drop((reader, writer));
        assert!(!holds_pipe(own, &HashSet::from([inode])));
    }
}
