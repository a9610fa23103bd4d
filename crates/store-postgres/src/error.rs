//! Every driver error becomes a store error here, by what the caller can do about it.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;

use chongming_core::store::{StoreError, StoreErrorKind};
use postgres::error::{DbError, SqlState};

type Cause = Box<dyn Error + Send + Sync>;

/// What went wrong inside a call.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The driver's own error: from the server, or on the way to it.
    Driver(postgres::Error),
    /// A row that this version cannot read.
    Unreadable(Cause),
    /// Something that no column can hold.
    Unfit(Cause),
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Fault {
    /// Did other transactions get in the way, so that the whole may be done again at once?
    pub(crate) fn is_collision(&self) -> bool {
        let collisions = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        self.code().is_some_and(|code| collisions.contains(code))
    }

    /// Is something there already that must be there once only?
    pub(crate) fn is_taken(&self) -> bool {
        self.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// May the connection have suffered? Not where the server only refused a statement.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Driver(error) => error.as_db_error().is_none_or(|said| {
                // Prepared statements that are gone, or made for other tables.
                said.severity() != "ERROR"
                    || matches!(said.code().code(), "26000" | "42P05" | "0A000")
            }),
            Self::Unreadable(_) | Self::Unfit(_) => false,
        }
    }

    /// Does a pooler refuse a parameter that a server would take?
    pub(crate) fn is_refused_parameter(&self) -> bool {
        match self {
            Self::Driver(error) => error.as_db_error().is_some_and(|said| {
                *said.code() == SqlState::PROTOCOL_VIOLATION
                    && said.message().contains("unsupported startup parameter")
            }),
            Self::Unreadable(_) | Self::Unfit(_) => false,
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            Self::Unreadable(_) | Self::Unfit(_) => None,
        }
    }
}

/// What a message about a database names: never with a password.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// `host:port/dbname`.
    pub(crate) name: String,
    /// The schema of the tables.
    pub(crate) schema: String,
}

impl Subject {
    /// The fault, of this operation, for the caller.
    pub(crate) fn error(&self, operation: &'static str, fault: Fault) -> StoreError {
        let (kind, message) = self.told(&fault);
        let error = StoreError::new(kind, operation, message);
        match fault {
            Fault::Driver(cause) => error.caused_by(cause),
            Fault::Unreadable(cause) | Fault::Unfit(cause) => error.caused_by(cause),
        }
    }

    /// Kind and message, for a fault that is kept.
    pub(crate) fn told(&self, fault: &Fault) -> (StoreErrorKind, String) {
        let (kind, advice, shown) = match fault {
            Fault::Unreadable(cause) => (
                StoreErrorKind::Corrupt,
                "holds a row that this version cannot read",
                cause.to_string(),
            ),
            Fault::Unfit(cause) => {
                (StoreErrorKind::Invalid, "cannot hold this value", cause.to_string())
            }
            Fault::Driver(error) => match error.as_db_error() {
                Some(said) => {
                    let (kind, advice) = classify(said);
                    (kind, advice, said.message().to_owned())
                }
                None => {
                    let (kind, advice) = on_the_way(error);
                    (kind, advice, Chain(error).to_string())
                }
            },
        };
        let schema = match kind {
            StoreErrorKind::Foreign | StoreErrorKind::Corrupt | StoreErrorKind::Denied => {
                format!(" (schema {})", self.schema)
            }
            StoreErrorKind::Unavailable
            | StoreErrorKind::Full
            | StoreErrorKind::Closed
            | StoreErrorKind::Invalid => String::new(),
        };
        (kind, format!("the database {}{schema} {advice}: {shown}", self.name))
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

/// By the five letters of the SQL standard; the first two are the class.
fn classify(error: &DbError) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, Denied, Foreign, Full, Invalid, Unavailable};
    let code = error.code().code();
    match (code.get(..2).unwrap_or_default(), code) {
        (_, "53100") => (Full, "has no room left; free some space on its disk"),
        (_, "53300") => (Unavailable, "has no connection left; close some, or raise the limit"),
        (_, "28P01" | "28000") => {
            (Denied, "refuses this user; check user, password and pg_hba.conf")
        }
        (_, "42501") => {
            (Denied, "may not be used like this by this role; ask its owner for the rights")
        }
        (_, "25006") => (Denied, "can only be read: it is a standby, or set to read-only"),
        (_, "3D000") => (Foreign, "does not exist; create it, or check its name"),
        (_, "26000" | "42P05") => (
            Unavailable,
            "is behind a pooler that loses prepared statements without being seen; use its session pooling, \
             PgBouncer, or no pooler",
        ),
        (_, "55000") => (
            Unavailable,
            "does not do this in the state that it is in; ask its owner to change that",
        ),
        (_, "57014" | "25P03" | "25P04") => {
            (Unavailable, "did not finish in time; try again later")
        }
        (_, "0A000") | ("3F" | "42", _) => {
            (Corrupt, "does not have the tables that it should have")
        }
        ("40" | "55" | "25", _) => (Unavailable, "was held up by other transactions; try again"),
        ("08" | "57", _) => (Unavailable, "went away; try again once it runs"),
        ("53" | "58", _) => (Unavailable, "lacks something that it needs; check its machine"),
        ("22" | "54", _) => (Invalid, "cannot hold this value"),
        ("28", _) => (Denied, "refuses this user"),
        (_, "XX001" | "XX002") => (Corrupt, "is damaged; restore it from a backup"),
        _ => (Unavailable, "reports an error"),
    }
}

/// What the server did not say itself.
fn on_the_way(error: &postgres::Error) -> (StoreErrorKind, &'static str) {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if error.is::<rustls::Error>() || error.is::<crate::tls::Refused>() {
            let advice = "cannot be used with the sslmode that was asked for";
            return (StoreErrorKind::Denied, advice);
        }
        // What an I/O error wraps is not its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    (
        StoreErrorKind::Unavailable,
        "cannot be reached; check that it runs and that the address is right",
    )
}

/// An error with its causes, each said once.
struct Chain<'a>(&'a postgres::Error);

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let words = error.to_string();
            if !said.contains(&words) {
                said.push_str(": ");
                said.push_str(&words);
            }
            cause = error.source();
        }
        f.write_str(&said)
    }
}
