//! What a guardian is told: nothing is lost and nobody waits where its socket is full, as it is when the guardian
//! has not run for a while.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, Result};
use rustix::net::{Shutdown, shutdown};
use rustix::process::Pid;
use rustix::time::Timespec;

use super::wire::{self, Message};
use crate::mailbox::lock;
use crate::source::{Source, Watch};

/// Longest time that a launch waits for the guardian to be told of it.
const PATIENCE: Duration = Duration::from_millis(50);
/// A guardian that takes nothing for so long stands still.
const STANDSTILL: Duration = Duration::from_secs(2);

/// The supervisor's end of the socket, and what it does not take yet.
pub(super) struct Outbox {
    socket: OwnedFd,
    /// Where the reactor waits; a guardian without one is told so little that its socket takes it.
    watch: Option<Arc<Watch>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    backlog: Backlog,
    /// Does the reactor wait for room?
    is_watched: bool,
    /// Since when the socket has taken nothing, while something waits.
    stuck_since: Option<Instant>,
}

/// Whether a message could wait for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It has gone out, or will soon.
    Yes,
    /// Nothing has gone out for long.
    StandsStill,
}

impl Outbox {
    pub(super) fn new(socket: OwnedFd, watch: Option<Arc<Watch>>) -> Self {
        Self { socket, watch, state: Mutex::default() }
    }

    pub(super) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sends it, or keeps it for later. Never waits.
    pub(super) fn tell(&self, message: Message, pidfd: Option<Arc<OwnedFd>>) {
        let mut state = lock(&self.state);
        state.backlog.add(message, pidfd);
        let _ = self.flush_into_socket(&mut state);
    }

    /// The same, but waits a moment for the guardian to take it.
    pub(super) fn tell_patiently(&self, message: Message) -> Told {
        self.tell(message, None);
        let mut until = None;
        loop {
            let mut state = lock(&self.state);
            if !state.backlog.contains(message) {
                return Told::Yes;
            }
            let sent = self.flush_into_socket(&mut state);
            let stuck = state.stuck_since.map_or(Duration::ZERO, |since| since.elapsed());
            drop(state);
            if sent != Err(Errno::AGAIN) {
                return Told::Yes;
            }
            let now = Instant::now();
            let left = until.get_or_insert(now + PATIENCE).saturating_duration_since(now);
            if left.is_zero() {
                return if stuck < STANDSTILL { Told::Yes } else { Told::StandsStill };
            }
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        }
    }

    /// Sends what the socket takes.
    pub(super) fn flush(&self) {
        let _ = self.flush_into_socket(&mut lock(&self.state));
    }

    /// The guardian is told no more, and reads the end of the stream.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.backlog = Backlog::default();
        self.await_room(&mut state, false);
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    fn flush_into_socket(&self, state: &mut State) -> Result<()> {
        let State { backlog, stuck_since, .. } = state;
        let sent = backlog.flush(|message, pidfd| {
            let pidfd = pidfd.map(AsFd::as_fd);
            wire::send(self.socket.as_fd(), message, pidfd.as_slice())?;
            *stuck_since = None;
            Ok(())
        });
        match sent {
            Ok(()) => *stuck_since = None,
            // It has ended, and its successor will be told of what there is.
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => *backlog = Backlog::default(),
            Err(_) => drop(stuck_since.get_or_insert_with(Instant::now)),
        }
        // What fails for want of something other than room is tried again with the next message.
        self.await_room(state, sent == Err(Errno::AGAIN));
        sent
    }

    fn await_room(&self, state: &mut State, wanted: bool) {
        let Some(watch) = &self.watch else { return };
        match (state.is_watched, wanted) {
            (false, true) => watch.writable(Source::Outbox, self.socket.as_fd()),
            (true, false) => watch.forget(self.socket.as_fd()),
            (true, true) | (false, false) => {}
        }
        state.is_watched = wanted;
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Messages that wait, in order. What is over before the guardian was told of its beginning is not told at all, so
/// that there are never more of them than groups that run or that the guardian knows.
#[derive(Default)]
struct Backlog(VecDeque<(Message, Option<Arc<OwnedFd>>)>);

impl Backlog {
    fn add(&mut self, message: Message, pidfd: Option<Arc<OwnedFd>>) {
        match message {
            Message::Launching(_) | Message::Started(..) => self.0.push_back((message, pidfd)),
            Message::NotLaunched(pipe) => {
                if !self.take_back(|waiting| waiting == Message::Launching(pipe)) {
                    self.0.push_back((message, None));
                }
            }
            Message::Ended(leader) => match self.started(leader) {
                Some(pipe) => {
                    self.take_back(|waiting| waiting == Message::Started(leader, pipe));
                    self.add(Message::NotLaunched(pipe), None);
                }
                None => self.0.push_back((message, None)),
            },
        }
    }

    /// The pipe of the launch of a group whose start is still to be told.
    fn started(&self, leader: Pid) -> Option<u64> {
        self.0.iter().find_map(|(waiting, _)| match waiting {
            Message::Started(other, pipe) if *other == leader => Some(*pipe),
            _ => None,
        })
    }

    fn take_back(&mut self, which: impl Fn(Message) -> bool) -> bool {
        let found = self.0.iter().position(|(waiting, _)| which(*waiting));
        found.and_then(|place| self.0.remove(place)).is_some()
    }

    fn contains(&self, message: Message) -> bool {
        self.0.iter().any(|(waiting, _)| *waiting == message)
    }

    fn flush(
        &mut self,
        mut send: impl FnMut(Message, Option<&OwnedFd>) -> Result<()>,
    ) -> Result<()> {
        while let Some((message, pidfd)) = self.0.front() {
            match send(*message, pidfd.as_deref()) {
                Ok(()) => drop(self.0.pop_front()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::wire::{Received, receive};
    use rustix::event::epoll;
    use rustix::fs::fstat;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
    use std::mem::MaybeUninit;

    fn leader(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    struct Rig {
        outbox: Outbox,
        guardian: OwnedFd,
        watch: Arc<Watch>,
    }

    impl Rig {
        fn new() -> Self {
            let (socket, guardian) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .unwrap();
            let watch = Arc::new(Watch::new().unwrap());
            Self { outbox: Outbox::new(socket, Some(Arc::clone(&watch))), guardian, watch }
        }

        /// What lies ready, and the inode of what comes along.
        fn read(&self) -> Vec<(Message, Option<u64>)> {
            let mut all = Vec::new();
            while let Ok(Received::Message(message, fd)) =
                receive(self.guardian.as_fd(), RecvFlags::DONTWAIT)
            {
                all.push((message, fd.map(|fd| fstat(&fd).unwrap().st_ino)));
            }
            all
        }

        fn has_event(&self) -> bool {
            let mut space = [MaybeUninit::<epoll::Event>::uninit(); 4];
            let (events, _) =
                epoll::wait(&*self.watch, &mut space, Some(&Timespec::default())).unwrap();
            events.iter().any(|event| Source::from_data(event.data) == Some(Source::Outbox))
        }
    }

    #[test]
    fn nothing_is_lost_and_all_stays_in_order_however_long_the_guardian_does_not_read() {
        let rig = Rig::new();
        let mut wanted = Vec::new();
        for n in 1..=2000 {
            let pidfd = rustix::pipe::pipe().unwrap().0;
            let inode = fstat(&pidfd).unwrap().st_ino;
            rig.outbox.tell(Message::Launching(n), None);
            let start = Message::Started(leader(i32::try_from(n).unwrap()), n);
            rig.outbox.tell(start, Some(Arc::new(pidfd)));
            wanted.extend([(Message::Launching(n), None), (start, Some(inode))]);
        }
        let mut read = rig.read();
        assert!(read.len() < wanted.len(), "the socket holds all: this tests nothing");
        while rig.has_event() {
            rig.outbox.flush();
            read.extend(rig.read());
        }
        assert_eq!(read, wanted);
        rig.outbox.tell(Message::Ended(leader(1)), None);
        assert_eq!(rig.read(), [(Message::Ended(leader(1)), None)]);
        assert!(!rig.has_event(), "only a full socket is waited for");
    }

    #[test]
    fn what_has_ended_does_not_wait() {
        let rig = Rig::new();
        let pidfd = Arc::new(rustix::pipe::pipe().unwrap().0);
        for n in 1..=5000 {
            let pid = leader(i32::try_from(n).unwrap());
            rig.outbox.tell(Message::Launching(n), None);
            rig.outbox.tell(Message::Started(pid, n), Some(Arc::clone(&pidfd)));
            rig.outbox.tell(Message::Ended(pid), None);
        }
        for n in 6000..=9000 {
            rig.outbox.tell(Message::Launching(n), None);
            rig.outbox.tell(Message::NotLaunched(n), None);
        }
        let waiting = lock(&rig.outbox.state).backlog.0.len();
        assert!(waiting <= 1, "{waiting}");
        // What the socket took when there was room is still taken back.
        let mut known = rig.read();
        rig.outbox.flush();
        known.extend(rig.read());
        drop(rig);
        assert_eq!(Arc::strong_count(&pidfd), 1);
        let (mut launches, mut groups) = (Vec::new(), Vec::new());
        for (message, _) in known {
            match message {
                Message::Launching(pipe) => launches.push(pipe),
                Message::NotLaunched(pipe) => launches.retain(|other| *other != pipe),
                Message::Started(pid, pipe) => {
                    launches.retain(|other| *other != pipe);
                    groups.push(pid);
                }
                Message::Ended(pid) => groups.retain(|other| *other != pid),
            }
        }
        assert_eq!((launches, groups), (vec![], vec![]));
    }

    #[test]
    fn a_number_that_is_used_again_is_told_again() {
        let mut backlog = Backlog::default();
        for message in [
            Message::Ended(leader(7)),
            Message::Started(leader(7), 1),
            Message::Started(leader(8), 2),
            Message::Ended(leader(7)),
            Message::Launching(3),
            Message::Started(leader(7), 3),
        ] {
            backlog.add(message, None);
        }
        let mut sent = Vec::new();
        backlog
            .flush(|message, _| {
                sent.push(message);
                Ok(())
            })
            .unwrap();
        assert_eq!(
            sent,
            [
                Message::Ended(leader(7)),
                Message::Started(leader(8), 2),
                Message::NotLaunched(1),
                Message::Launching(3),
                Message::Started(leader(7), 3),
            ]
        );
    }

    #[test]
    fn a_launch_waits_for_a_guardian_that_reads_and_not_for_ever_for_one_that_does_not() {
        let rig = Rig::new();
        while !rig.outbox_is_stuck() {
            rig.outbox.tell(Message::Launching(1), None);
        }
        assert_eq!(rig.outbox.tell_patiently(Message::Launching(2)), Told::Yes);
        assert!(lock(&rig.outbox.state).backlog.contains(Message::Launching(2)));
        lock(&rig.outbox.state).stuck_since = Instant::now().checked_sub(STANDSTILL);
        assert_eq!(rig.outbox.tell_patiently(Message::Launching(3)), Told::StandsStill);
        rig.read();
        assert_eq!(rig.outbox.tell_patiently(Message::Launching(4)), Told::Yes);
        let late = [2, 3, 4].map(|n| (Message::Launching(n), None));
        assert!(rig.read().ends_with(&late));
        drop(rig.guardian);
        assert_eq!(rig.outbox.tell_patiently(Message::Launching(5)), Told::Yes);
        assert!(lock(&rig.outbox.state).backlog.0.is_empty());
    }

    impl Rig {
        fn outbox_is_stuck(&self) -> bool {
            lock(&self.outbox.state).stuck_since.is_some()
        }
    }
}
