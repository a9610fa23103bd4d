//! Running clauses, with or without a test framework.

use std::any::Any;
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::breach::Breach;
use crate::clause::{CLAUSES, Clause};
use crate::fixture::{Data, Fixture};

/// What became of one clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It is broken.
    Broken(Breach),
    /// The store or the fixture panicked.
    Panicked(String),
}

/// What became of all clauses.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each clause with its verdict, in the order of [`CLAUSES`].
    pub verdicts: Vec<(&'static Clause, Verdict)>,
}

impl Report {
    /// Does every clause hold?
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdicts.iter().all(|(_, verdict)| *verdict == Verdict::Holds)
    }

    /// Names of the clauses that do not hold.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        let broken = self.verdicts.iter().filter(|(_, verdict)| *verdict != Verdict::Holds);
        broken.map(|(clause, _)| clause.name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (clause, verdict) in &self.verdicts {
            explain(f, clause, verdict)?;
        }
        let broken = self.broken().len();
        writeln!(f, "{} clauses, {broken} broken", self.verdicts.len())
    }
}

fn explain(f: &mut impl fmt::Write, clause: &Clause, verdict: &Verdict) -> fmt::Result {
    match verdict {
        Verdict::Holds => Ok(()),
        Verdict::Broken(breach) => {
            writeln!(f, "{}: {}\n  because:  {}\n  {breach}", clause.name, clause.rule, clause.why)
        }
        Verdict::Panicked(message) => writeln!(f, "{}: panicked: {message}", clause.name),
    }
}

/// Runs every clause on fresh data each.
#[must_use]
pub fn run(fixture: &dyn Fixture) -> Report {
    Report { verdicts: CLAUSES.iter().map(|clause| (clause, clause.check(fixture))).collect() }
}

/// Runs one clause by its name; panics with the breach when it does not hold. For `#[test]` functions.
///
/// Where the fixture's data [is missing](Fixture::missing), a line on stderr says that the clause was skipped.
///
/// # Panics
/// When the clause does not hold, or there is none of this name.
pub fn assert_clause(name: &str, fixture: &dyn Fixture) {
    let Some(clause) = CLAUSES.iter().find(|clause| clause.name == name) else {
        panic!("there is no clause {name:?}");
    };
    if let Some(why) = fixture.missing() {
        // Not `eprintln`, which the test runner would hide.
        let _ = writeln!(std::io::stderr(), "skipped {name}: {why}");
        return;
    }
    let verdict = clause.check(fixture);
    if verdict != Verdict::Holds {
        let mut text = String::new();
        let _ = explain(&mut text, clause, &verdict); // writing to a string does not fail
        panic!("{text}");
    }
}

pub(crate) fn judge(case: fn(&dyn Data) -> Result<(), Breach>, fixture: &dyn Fixture) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| case(&*fixture.fresh()))) {
        Ok(Ok(())) => Verdict::Holds,
        Ok(Err(breach)) => Verdict::Broken(breach),
        Err(panic) => Verdict::Panicked(message(&*panic)),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
