//! What can go wrong with a store, by what the caller does next.

use std::error::Error;
use std::fmt;

use crate::time::Timestamp;

/// A call to a store that did not work at all.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// It cannot be reached, is busy, or did not answer: try again later.
    Unavailable,
    /// There is no room left.
    Full,
    /// It may not be written or read with these rights.
    Denied,
    /// It is not a store of this product, or of a newer version: nothing was touched.
    Foreign,
    /// Its content cannot be read.
    Corrupt,
    /// It was closed.
    Closed,
    /// The caller asked for something that is no valid request.
    Invalid,
}

impl StoreError {
    /// An error of `operation`, such as `write` or `open`.
    pub fn new(kind: StoreErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self { kind, operation, message: message.into(), source: None }
    }

    /// With the driver's own error behind it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The call came after `close`.
    #[must_use]
    pub fn closed(operation: &'static str) -> Self {
        Self::new(StoreErrorKind::Closed, operation, "the store is closed")
    }

    /// What the caller can do.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// May the same call work later without anybody's help?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self.kind {
            StoreErrorKind::Unavailable | StoreErrorKind::Full => true,
            StoreErrorKind::Denied
            | StoreErrorKind::Foreign
            | StoreErrorKind::Corrupt
            | StoreErrorKind::Closed
            | StoreErrorKind::Invalid => false,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store, {}: {}", self.operation, self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// Why one entry of a batch was refused; the rest of the batch is not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// Create: the id is taken.
    Exists,
    /// Save or touch: there is no such task.
    NotFound,
    /// Save: another version is stored than expected. Never retried: there is a second writer.
    Conflict {
        /// The version that is stored.
        stored: u64,
    },
    /// Save with a lease guard: the holder lives.
    LeaseHeld {
        /// Until when, as the store knows.
        until: Timestamp,
    },
    /// Save: the new version is not above the expected one.
    NotNewer,
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("the task id exists already"),
            Self::NotFound => f.write_str("there is no such task"),
            Self::Conflict { stored } => {
                write!(
                    f,
                    "version conflict: version {stored} is stored, so somebody else wrote this task"
                )
            }
            Self::LeaseHeld { until } => {
                write!(f, "its holder lives: the lease lasts until {until}")
            }
            Self::NotNewer => f.write_str("the new version is not above the expected one"),
        }
    }
}

impl Error for EntryError {}
