//! The guardian's own process: waits for the supervisor's end, then kills what it left behind.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{
    Pid, PidfdFlags, RawPid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process_group,
    pidfd_open, pidfd_send_signal, setrlimit,
};

use super::has_socket;
use super::wire::{self, Message, Received};
use crate::environment::{environment_of, is_guardian, is_marked};
use crate::procfs::{Stat, all_pids, holds_pipe};
use crate::sys;

/// Packets are read in lots, so that thousands of short commands do not wake us thousands of times.
const LOT: Duration = Duration::from_millis(10);
/// Time between two looks through all processes.
const BETWEEN_SCANS: Duration = Duration::from_millis(20);
/// Longest time that a process whose environment cannot be seen yet keeps us looking.
const UNDECIDED: Duration = Duration::from_secs(1);
/// Longest time that the guardian of a supervisor among them gets for its own work.
const OTHER_GUARDIAN: Duration = Duration::from_secs(5);

/// Guards until the supervisor is gone, and never returns.
pub(super) fn run(token: &str) -> ! {
    if !has_socket() {
        eprintln!(
            "{} is set, but this process was not started as a guardian; unset it",
            crate::error::GUARDIAN
        );
        std::process::exit(1);
    }
    // Each group costs a descriptor.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let stdin = std::io::stdin();
    // A supervisor that is gone already has all the more left something behind.
    let _ = wire::send_hello(stdin.as_fd());
    let mut groups: HashMap<RawPid, (OwnedFd, u64)> = HashMap::new();
    let mut launching: HashSet<u64> = HashSet::new();
    let mut flags = RecvFlags::empty();
    loop {
        match wire::receive(stdin.as_fd(), flags) {
            Ok(Received::Message(Message::Started(leader, pipe), Some(pidfd))) => {
                launching.remove(&pipe);
                groups.insert(leader.as_raw_nonzero().get(), (pidfd, pipe));
            }
            Ok(Received::Message(Message::Ended(leader), _)) => {
                groups.remove(&leader.as_raw_nonzero().get());
            }
            Ok(Received::Message(Message::Launching(pipe), _)) => {
                launching.insert(pipe);
            }
            Ok(Received::Message(Message::NotLaunched(pipe), _)) => {
                launching.remove(&pipe);
            }
            Ok(Received::Message(Message::Started(..), None) | Received::Noise)
            // It has gone without reading our hello; what it has sent is still to be read.
            | Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => {
                sleep(LOT);
                flags = RecvFlags::empty();
                continue;
            }
            Ok(Received::End) | Err(_) => break,
        }
        flags = RecvFlags::DONTWAIT;
    }
    let mut pipes = launching;
    for (leader, (pidfd, pipe)) in groups {
        kill_group(leader, &pidfd);
        pipes.insert(pipe);
    }
    kill_marked(token, &pipes);
    std::process::exit(0);
}

/// Kills the group that the process behind the descriptor leads or led.
fn kill_group(leader: RawPid, pidfd: &OwnedFd) {
    if sys::can_signal_group() {
        let _ = sys::signal_group(pidfd.as_fd(), Signal::KILL.as_raw());
        return;
    }
    // Older kernels: a leader that is stopped cannot end by itself, so its number stays its own.
    if pidfd_send_signal(pidfd, Signal::STOP).is_ok()
        && let Some(pid) = Pid::from_raw(leader)
    {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Kills everything that carries the mark, or holds the pipe of an attempt, until two looks in a row find
/// nothing. A child may shed the mark (as `env -i` does), also before its launcher could tell of it; the pipe
/// it keeps.
fn kill_marked(token: &str, pipes: &HashSet<u64>) {
    let own = Stat::of(getpid().as_raw_nonzero().get()).map_or(0, |stat| stat.start_time);
    let start = Instant::now();
    let mut clean = 0;
    while clean < 2 {
        let mut quiet = true;
        for pid in all_pids() {
            match look(pid, token, pipes, own) {
                Look::Ours(pidfd) => {
                    quiet = false;
                    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                    if Stat::of(pid).is_some_and(|stat| stat.group == pid) {
                        kill_group(pid, &pidfd);
                    }
                }
                // What it guards it knows better than we do. Its supervisor ends now, and so it ends by itself, unless
                // it was stopped along with what it guards.
                Look::Guardian(pidfd) => {
                    quiet = false;
                    let is_late = start.elapsed() >= OTHER_GUARDIAN;
                    let signal = if is_late { Signal::KILL } else { Signal::CONT };
                    let _ = pidfd_send_signal(&pidfd, signal);
                }
                Look::Undecided if start.elapsed() < UNDECIDED => quiet = false,
                Look::Undecided | Look::Other => {}
            }
        }
        clean = if quiet { clean + 1 } else { 0 };
        sleep(BETWEEN_SCANS);
    }
}

enum Look {
    Ours(OwnedFd),
    /// Of a supervisor that is ours.
    Guardian(OwnedFd),
    Other,
    /// It has no environment yet: it may be in the middle of becoming its program.
    Undecided,
}

fn look(pid: RawPid, token: &str, pipes: &HashSet<u64>, own_start: u64) -> Look {
    // The descriptor comes first: what is read afterwards belongs to the same process if that still lives
    // when it is signalled.
    let Some(id) = Pid::from_raw(pid).filter(|id| *id != getpid()) else { return Look::Other };
    let Ok(pidfd) = pidfd_open(id, PidfdFlags::empty()) else { return Look::Other };
    let Some(stat) = Stat::of(pid) else { return Look::Other };
    if stat.is_zombie() || stat.is_kernel_thread() {
        return Look::Other;
    }
    let holds_pipe = !pipes.is_empty() && holds_pipe(pid, pipes);
    match environment_of(pid) {
        Some(environment) if holds_pipe || is_marked(&environment, token) => {
            if is_guardian(&environment) { Look::Guardian(pidfd) } else { Look::Ours(pidfd) }
        }
        None if holds_pipe => Look::Ours(pidfd),
        Some(environment) if environment.is_empty() && stat.start_time >= own_start => {
            Look::Undecided
        }
        Some(_) | None => Look::Other,
    }
}
