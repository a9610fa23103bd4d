//! What the supervisor tells its guardian: one packet each, a pidfd with each start.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send as send_plain, sendmsg,
};
use rustix::process::Pid;

/// What the guardian sends once, when it guards.
const HELLO: &[u8] = b"guarding";

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A child is about to be started that will hold the pipe with this inode.
    Launching(u64),
    /// That launch has failed.
    NotLaunched(u64),
    /// A group was started, by the launch with this pipe; its leader's pidfd comes along.
    Started(Pid, u64),
    /// That group is empty.
    Ended(Pid),
}

/// Kind and two numbers.
const PACKET: usize = 17;

impl Message {
    fn encode(self) -> [u8; PACKET] {
        let number = |pid: Pid| u64::from(pid.as_raw_nonzero().get().unsigned_abs());
        let (kind, first, second) = match self {
            Self::Launching(pipe) => (b'L', pipe, 0),
            Self::NotLaunched(pipe) => (b'N', pipe, 0),
            Self::Started(pid, pipe) => (b'S', number(pid), pipe),
            Self::Ended(pid) => (b'E', number(pid), 0),
        };
        let mut packet = [kind; PACKET];
        let numbers = first.to_le_bytes().into_iter().chain(second.to_le_bytes());
        for (byte, value) in packet.iter_mut().skip(1).zip(numbers) {
            *byte = value;
        }
        packet
    }

    fn decode(packet: &[u8]) -> Option<Self> {
        let (kind, numbers) = packet.split_first()?;
        let (first, second) = numbers.split_first_chunk()?;
        let first = u64::from_le_bytes(*first);
        let second = u64::from_le_bytes(second.try_into().ok()?);
        let pid = || i32::try_from(first).ok().and_then(Pid::from_raw);
        match kind {
            b'L' => Some(Self::Launching(first)),
            b'N' => Some(Self::NotLaunched(first)),
            b'S' => pid().map(|pid| Self::Started(pid, second)),
            b'E' => pid().map(Self::Ended),
            _ => None,
        }
    }
}

/// Sends a packet without ever waiting.
pub(crate) fn send(socket: BorrowedFd<'_>, message: Message, fds: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&message.encode())], &mut ancillary, flags).map(drop)
}

/// What the guardian can read.
#[derive(Debug)]
pub(crate) enum Received {
    /// A packet, with its descriptor if it has one.
    Message(Message, Option<OwnedFd>),
    /// Nothing that makes sense.
    Noise,
    /// The supervisor is gone.
    End,
}

/// Receives one packet.
pub(crate) fn receive(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut packet = [0; PACKET];
    let got = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut packet)],
        &mut ancillary,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    if got.bytes == 0 {
        return Ok(Received::End);
    }
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let message = packet.get(..got.bytes).and_then(Message::decode);
    Ok(message.map_or(Received::Noise, |message| Received::Message(message, fd)))
}

/// The guardian's first word.
pub(crate) fn send_hello(socket: BorrowedFd<'_>) -> Result<()> {
    send_plain(socket, HELLO, SendFlags::NOSIGNAL).map(drop)
}

/// Was that the guardian's first word?
pub(crate) fn receive_hello(socket: BorrowedFd<'_>) -> bool {
    let mut packet = [0; 16];
    loop {
        match recv(socket, &mut packet, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            Ok((length, _)) => return packet.get(..length) == Some(HELLO),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::getpid;
    use std::os::fd::AsFd;

    #[test]
    fn packets_arrive_whole_and_in_order() {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let pid = getpid();
        send(a.as_fd(), Message::Launching(u64::MAX), &[]).unwrap();
        send(a.as_fd(), Message::Started(pid, u64::MAX), &[a.as_fd()]).unwrap();
        send(a.as_fd(), Message::NotLaunched(u64::MAX), &[]).unwrap();
        send(a.as_fd(), Message::Ended(pid), &[]).unwrap();
        send_plain(&a, b"noise", SendFlags::empty()).unwrap();
        let next = || receive(b.as_fd(), RecvFlags::empty()).unwrap();
        let is = |message| matches!(next(), Received::Message(m, None) if m == message);
        assert!(is(Message::Launching(u64::MAX)));
        assert!(
            matches!(next(), Received::Message(Message::Started(p, u64::MAX), Some(_)) if p == pid)
        );
        assert!(is(Message::NotLaunched(u64::MAX)));
        assert!(matches!(next(), Received::Message(Message::Ended(p), None) if p == pid));
        assert!(matches!(next(), Received::Noise));
        send_hello(b.as_fd()).unwrap();
        assert!(receive_hello(a.as_fd()));
        drop(a);
        assert!(matches!(next(), Received::End));
    }
}
