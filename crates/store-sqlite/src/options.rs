//! How a database is opened.

use std::time::Duration;

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is on the disk: survives a power failure.
    #[default]
    Full,
    /// When the operating system has it: survives a crash of the program, but a power failure may take the
    /// latest commits. Never damages the file.
    Normal,
}

impl Synchronous {
    /// SQLite's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Options of a [`SqliteStore`](crate::SqliteStore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a commit counts as durable.
    pub synchronous: Synchronous,
    /// How long to wait for another program that holds the file, before the call fails as `Unavailable`.
    pub lock_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { synchronous: Synchronous::Full, lock_wait: Duration::from_secs(5) }
    }
}
