//! The two pipes of one child, with what is still to be written.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, read, write};

use super::down::Down;
use super::session::{Heard, Session};

/// More than a pipe can hold: bounds the last read of a pipe that somebody still writes to.
const PIPE_MAX_BYTES: usize = 1024 * 1024;

/// Is there still something to be written?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// All is written, or nobody reads any more.
    Nothing,
    /// The pipe is full.
    More,
}

/// Our ends of both pipes, which must not block.
pub(crate) struct Channel {
    up: Option<OwnedFd>,
    down: Option<OwnedFd>,
    to_write: Vec<u8>,
    session: Session,
}

impl Channel {
    /// With the first line waiting to be written.
    pub(crate) fn new(up: OwnedFd, down: OwnedFd, first: &Down, session: Session) -> Self {
        Self { up: Some(up), down: Some(down), to_write: first.encode().into_bytes(), session }
    }

    /// The end that we read, while it is open.
    pub(crate) fn up(&self) -> Option<BorrowedFd<'_>> {
        self.up.as_ref().map(OwnedFd::as_fd)
    }

    /// The end that we write, while it is open.
    pub(crate) fn down(&self) -> Option<BorrowedFd<'_>> {
        self.down.as_ref().map(OwnedFd::as_fd)
    }

    /// Stops reading.
    pub(crate) fn close_up(&mut self) {
        self.up = None;
    }

    /// What the child has said.
    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    /// Everything that it will ever have said.
    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    /// Reads once what is there; `None` when the child has closed its end.
    pub(crate) fn read(&mut self, buffer: &mut [u8], told: bool) -> Option<Vec<Heard>> {
        match read(self.up.as_ref()?, &mut *buffer) {
            Ok(0) => None,
            Ok(length) => Some(self.session.hear(buffer.get(..length)?, told)),
            Err(Errno::AGAIN | Errno::INTR) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Reads all that is still there, without waiting for those who hold the pipe open.
    pub(crate) fn drain(&mut self, buffer: &mut [u8], told: bool) -> Vec<Heard> {
        let mut all = Vec::new();
        let mut left = PIPE_MAX_BYTES;
        while let Some(up) = self.up.as_ref().filter(|_| left > 0) {
            match read(up, &mut *buffer) {
                Ok(length) if length > 0 => {
                    left = left.saturating_sub(length);
                    all.extend(self.session.hear(buffer.get(..length).unwrap_or_default(), told));
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        self.up = None;
        all.extend(self.session.finish(told));
        all
    }

    /// Tells the child something.
    pub(crate) fn tell(&mut self, message: &Down) -> Pending {
        if self.down.is_some() {
            self.to_write.extend_from_slice(message.encode().as_bytes());
        }
        self.flush()
    }

    /// Writes what the pipe takes.
    pub(crate) fn flush(&mut self) -> Pending {
        let mut written = 0;
        while let (Some(down), Some(rest)) = (&self.down, self.to_write.get(written..)) {
            if rest.is_empty() {
                break;
            }
            match write(down, rest) {
                Ok(length) => written += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.to_write.drain(..written);
                    return Pending::More;
                }
                Err(_) => self.down = None,
            }
        }
        self.to_write = Vec::new();
        Pending::Nothing
    }
}
