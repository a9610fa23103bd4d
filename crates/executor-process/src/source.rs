//! What the reactor waits for, and what an event is about, as a number.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::mailbox::ChildId;
use crate::output::Stream;

/// What an epoll event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Mailbox,
    Guardian,
    Outbox,
    Leader(ChildId),
    Stream(ChildId, Stream),
    Up(ChildId),
    Down(ChildId),
}

impl Source {
    /// What goes into the kernel.
    pub(crate) fn data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Mailbox => 0,
            Self::Guardian => 1,
            Self::Outbox => 2,
            Self::Leader(id) => id << 3,
            Self::Stream(id, Stream::Out) => id << 3 | 1,
            Self::Stream(id, Stream::Err) => id << 3 | 2,
            Self::Up(id) => id << 3 | 3,
            Self::Down(id) => id << 3 | 4,
        })
    }

    /// Ids of children begin at 1, so the first eight numbers are free.
    pub(crate) fn from_data(data: EventData) -> Option<Self> {
        let number = data.u64();
        let id = number >> 3;
        match (id, number & 7) {
            (0, 0) => Some(Self::Mailbox),
            (0, 1) => Some(Self::Guardian),
            (0, 2) => Some(Self::Outbox),
            (0, _) => None,
            (_, 0) => Some(Self::Leader(id)),
            (_, 1) => Some(Self::Stream(id, Stream::Out)),
            (_, 2) => Some(Self::Stream(id, Stream::Err)),
            (_, 3) => Some(Self::Up(id)),
            (_, 4) => Some(Self::Down(id)),
            _ => None,
        }
    }
}

/// What the reactor waits for. Launchers add their children to it themselves.
#[derive(Debug)]
pub(crate) struct Watch(OwnedFd);

impl Watch {
    /// Waits for nothing yet.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        epoll::create(CreateFlags::CLOEXEC).map(Self)
    }

    /// Waits until there is something to read.
    pub(crate) fn readable(&self, source: Source, fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
        epoll::add(&self.0, fd, source.data(), EventFlags::IN)
    }

    /// Waits until there is room to write. To ask for it twice is an error without harm.
    pub(crate) fn writable(&self, source: Source, fd: BorrowedFd<'_>) {
        let _ = epoll::add(&self.0, fd, source.data(), EventFlags::OUT);
    }

    /// Waits for it no longer.
    pub(crate) fn forget(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.0, fd);
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
