//! What every store must do (spec 9 to 12), clause by clause.

mod cases;
mod clauses;
mod fixture;
mod sample;

pub use clauses::CLAUSES;
pub use fixture::{Data, Fixture};

use crate::clause::Clause;
use crate::report::{Report, Verdict, assert_case, judge_all, verdict};
use clauses::CASES;

/// Runs every clause on fresh data each.
#[must_use]
pub fn run(fixture: &dyn Fixture) -> Report {
    judge_all(CASES, |look| look(&*fixture.fresh()))
}

/// Runs one of the [`CLAUSES`] on fresh data; `None` when it is none of them.
#[must_use]
pub fn check(clause: &Clause, fixture: &dyn Fixture) -> Option<Verdict> {
    let case = CASES.iter().find(|case| case.clause == *clause)?;
    Some(verdict(|| (case.look)(&*fixture.fresh())))
}

/// Runs one clause by its name; panics with the breach when it does not hold. For `#[test]` functions.
///
/// Where the fixture's data [is missing](Fixture::missing), a line on stderr says that the clause was skipped.
///
/// # Panics
/// When the clause does not hold, or there is none of this name.
pub fn assert_clause(name: &str, fixture: &dyn Fixture) {
    assert_case(CASES, name, fixture.missing(), |look| look(&*fixture.fresh()));
}
