//! Every driver error becomes a store error here, by what the caller can do about it.

use std::fmt::Display;
use std::time::Duration;

use chongming_core::store::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// What is said to those who may only read.
pub(crate) const READ_ONLY: &str = "cannot be written; check the rights of the file and its folder";

/// What a message about a database names.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The database, as a person knows it.
    pub(crate) name: String,
    /// How long locks are waited for.
    pub(crate) lock_wait: Duration,
}

impl Subject {
    /// The driver's error, of this operation, for the caller.
    pub(crate) fn error(&self, operation: &'static str, error: rusqlite::Error) -> StoreError {
        let (kind, advice) = match &error {
            rusqlite::Error::SqliteFailure(cause, _)
            | rusqlite::Error::SqlInputError { error: cause, .. } => classify(*cause),
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => {
                (StoreErrorKind::Corrupt, "holds a row that this version cannot read")
            }
            rusqlite::Error::ToSqlConversionFailure(_) | rusqlite::Error::NulError(_) => {
                (StoreErrorKind::Invalid, "cannot hold this value")
            }
            // The rest says that statements and schema do not fit each other.
            _ => (StoreErrorKind::Corrupt, "does not have the tables that it should have"),
        };
        let message = if kind == StoreErrorKind::Unavailable && is_busy(&error) {
            format!(
                "the database {} stayed locked by another program for {:?}; try again, or find out what \
                 holds it",
                self.name, self.lock_wait
            )
        } else {
            format!("the database {} {advice}: {}", self.name, Shown(&error))
        };
        StoreError::new(kind, operation, message).caused_by(error)
    }

    /// An error that the driver knows nothing of.
    pub(crate) fn refuse(
        &self,
        kind: StoreErrorKind,
        operation: &'static str,
        what: impl Display,
    ) -> StoreError {
        StoreError::new(kind, operation, format!("the database {} {what}", self.name))
    }
}

fn classify(cause: ffi::Error) -> (StoreErrorKind, &'static str) {
    match cause.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (StoreErrorKind::Unavailable, "is locked")
        }
        ErrorCode::DiskFull => (StoreErrorKind::Full, "has no room left; free some space"),
        ErrorCode::ReadOnly => (StoreErrorKind::Denied, READ_ONLY),
        ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            (StoreErrorKind::Denied, "may not be used with these rights")
        }
        ErrorCode::CannotOpen => (
            StoreErrorKind::Denied,
            "cannot be opened; check the rights of the file and its folder",
        ),
        ErrorCode::DatabaseCorrupt => {
            (StoreErrorKind::Corrupt, "is damaged; restore it from a backup")
        }
        ErrorCode::NotADatabase => (StoreErrorKind::Foreign, "is no SQLite database"),
        ErrorCode::SystemIoFailure => {
            (StoreErrorKind::Unavailable, "could not be read or written; check the disk")
        }
        ErrorCode::OutOfMemory
        | ErrorCode::OperationAborted
        | ErrorCode::OperationInterrupted
        | ErrorCode::FileLockingProtocolFailed => (StoreErrorKind::Unavailable, "did not answer"),
        ErrorCode::TooBig => (StoreErrorKind::Invalid, "cannot hold something this large"),
        // The rest says that statements and schema do not fit each other.
        _ => (StoreErrorKind::Corrupt, "does not have the tables that it should have"),
    }
}

/// Is another connection in the way?
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The driver's text, without the statement that it may quote.
struct Shown<'a>(&'a rusqlite::Error);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            rusqlite::Error::SqlInputError { msg, .. } => f.write_str(msg),
            other => other.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Connection, OpenFlags};

    fn said(error: rusqlite::Error) -> (StoreErrorKind, String) {
        let subject = Subject { name: "/x.db".into(), lock_wait: Duration::from_secs(5) };
        let error = subject.error("write", error);
        (error.kind(), error.to_string())
    }

    #[test]
    fn a_full_disk_is_full() {
        let connection = Connection::open_in_memory().unwrap();
        let filled = connection.execute_batch(
            "PRAGMA max_page_count = 3; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(99999));",
        );
        let (kind, text) = said(filled.unwrap_err());
        assert_eq!(kind, StoreErrorKind::Full);
        assert!(text.starts_with("store, write: the database /x.db has no room left"), "{text}");
    }

    #[test]
    fn no_right_to_write_is_denied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(&path, flags).unwrap();
        let written = connection.execute("INSERT INTO t VALUES (1)", []);
        assert_eq!(said(written.unwrap_err()).0, StoreErrorKind::Denied);
    }

    #[test]
    fn a_missing_table_is_told_without_the_statement() {
        let connection = Connection::open_in_memory().unwrap();
        let (kind, text) = said(connection.prepare("SELECT secret FROM t").unwrap_err());
        assert_eq!(kind, StoreErrorKind::Corrupt);
        assert!(text.contains("no such table: t") && !text.contains("secret"), "{text}");
    }
}
