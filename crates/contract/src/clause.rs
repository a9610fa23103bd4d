//! One promise, and the case that looks whether it is kept.

use std::fmt;

/// One promise of a store or of an executor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// Group and case, as the test is called.
    pub name: &'static str,
    /// What must hold.
    pub rule: &'static str,
    /// What it is good for.
    pub why: &'static str,
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

/// A clause with the function that looks.
pub(crate) struct Case<F> {
    pub(crate) clause: Clause,
    pub(crate) look: F,
}
