//! How a case says that a clause is broken.

use std::fmt::{self, Debug};

use chongming_core::store::{EntryError, StoreError, StoreErrorKind};
use chongming_core::{IllegalTransition, InvalidText};

/// A clause that does not hold: what was looked at, what should have been seen, and what was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// What was looked at.
    pub what: String,
    /// What the clause demands.
    pub expected: String,
    /// What the store did.
    pub seen: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  expected: {}\n  seen:     {}", self.what, self.expected, self.seen)
    }
}

impl std::error::Error for Breach {}

impl From<StoreError> for Breach {
    fn from(error: StoreError) -> Self {
        Self::of("a call", "it works", format_args!("{error} ({:?})", error.kind()))
    }
}

impl From<InvalidText> for Breach {
    fn from(error: InvalidText) -> Self {
        Self::of("the case itself", "a valid text", error)
    }
}

impl From<IllegalTransition> for Breach {
    fn from(error: IllegalTransition) -> Self {
        Self::of("the case itself", "a legal transition", error)
    }
}

impl Breach {
    pub(crate) fn of(what: &str, expected: impl fmt::Display, seen: impl fmt::Display) -> Self {
        Self { what: what.to_owned(), expected: expected.to_string(), seen: seen.to_string() }
    }
}

/// Result of a case and of its steps.
pub(crate) type Outcome<T = ()> = Result<T, Breach>;

/// Is what was seen what was expected?
pub(crate) fn same<T: Debug + PartialEq>(what: &str, seen: T, expected: T) -> Outcome {
    if seen == expected {
        return Ok(());
    }
    Err(Breach::of(what, format_args!("{expected:?}"), format_args!("{seen:?}")))
}

/// The thing that must be there.
pub(crate) fn present<T>(what: &str, seen: Option<T>) -> Outcome<T> {
    seen.ok_or_else(|| Breach::of(what, "it is there", "nothing"))
}

/// Did the call fail in this way?
pub(crate) fn fails<T: Debug>(
    what: &str,
    seen: Result<T, StoreError>,
    expected: StoreErrorKind,
) -> Outcome {
    match seen {
        Err(error) if error.kind() == expected => Ok(()),
        Err(error) => Err(Breach::of(
            what,
            format_args!("an error of kind {expected:?}"),
            format_args!("{error} ({:?})", error.kind()),
        )),
        Ok(seen) => Err(Breach::of(
            what,
            format_args!("an error of kind {expected:?}"),
            format_args!("success with {seen:?}"),
        )),
    }
}

/// Results of a batch, of which each must be what is expected.
pub(crate) fn results(
    what: &str,
    seen: &[Result<(), EntryError>],
    expected: &[Result<(), EntryError>],
) -> Outcome {
    same(what, seen, expected)
}
