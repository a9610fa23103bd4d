//! What can go wrong, and what the caller is told.

use std::error::Error;
use std::io;

use chongming_core::store::{StoreError, StoreErrorKind};

/// A call that did not work.
#[derive(Debug)]
pub(super) enum Problem {
    /// The database's own error.
    Database(redb::Error),
    /// A record that this version cannot read.
    Unreadable(Box<dyn Error + Send + Sync>),
    /// A request that is none.
    Invalid(String),
}

pub(super) type Result<T> = std::result::Result<T, Problem>;

macro_rules! from_database {
    ($($error:ident),+) => {
        $(
            impl From<redb::$error> for Problem {
                fn from(error: redb::$error) -> Self {
                    Self::Database(error.into())
                }
            }
        )+
    };
}

from_database!(DatabaseError, TransactionError, TableError, StorageError, CommitError);

/// Of the records: whatever their fields do not take.
pub(super) fn unreadable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Problem {
    Problem::Unreadable(error.into())
}

impl Problem {
    /// By what the caller can do next.
    pub(super) fn told(self, operation: &'static str) -> StoreError {
        let (kind, advice) = match &self {
            Self::Invalid(message) => {
                return StoreError::new(StoreErrorKind::Invalid, operation, message.clone());
            }
            Self::Unreadable(_) => {
                (StoreErrorKind::Corrupt, "the file holds a record that cannot be read")
            }
            Self::Database(redb::Error::DatabaseAlreadyOpen) => (
                StoreErrorKind::Unavailable,
                "another process has the file open; share one handle, or wait for its end",
            ),
            Self::Database(redb::Error::UpgradeRequired(_)) => {
                (StoreErrorKind::Foreign, "the file was written by another version of redb")
            }
            Self::Database(redb::Error::Corrupted(_)) => {
                (StoreErrorKind::Corrupt, "the file is damaged; restore it from a backup")
            }
            Self::Database(redb::Error::Io(error)) => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    (StoreErrorKind::Full, "there is no room left; free some space")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    (StoreErrorKind::Denied, "the file may not be used; check its rights")
                }
                _ => (StoreErrorKind::Unavailable, "the file cannot be read or written"),
            },
            Self::Database(_) => (StoreErrorKind::Unavailable, "the database refuses"),
        };
        let cause: Box<dyn Error + Send + Sync> = match self {
            Self::Database(error) => error.into(),
            Self::Unreadable(error) => error,
            Self::Invalid(message) => message.into(),
        };
        StoreError::new(kind, operation, format!("{advice}: {cause}")).caused_by(cause)
    }
}
