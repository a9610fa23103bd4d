//! Running clauses, with or without a test framework.

use std::any::Any;
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::breach::Breach;
use crate::clause::{Case, Clause};

/// What became of one clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It is broken.
    Broken(Breach),
    /// The store, the executor or the fixture panicked.
    Panicked(String),
}

/// What became of all clauses.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each clause with its verdict, in the order of the list.
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

/// Judges all cases.
pub(crate) fn judge_all<F>(
    cases: &'static [Case<F>],
    judge: impl Fn(&F) -> Result<(), Breach>,
) -> Report {
    let verdicts = cases.iter().map(|case| (&case.clause, verdict(|| judge(&case.look))));
    Report { verdicts: verdicts.collect() }
}

/// Judges the case of this name; panics unless it holds. What is missing is told instead.
pub(crate) fn assert_case<F>(
    cases: &[Case<F>],
    name: &str,
    missing: Option<String>,
    judge: impl Fn(&F) -> Result<(), Breach>,
) {
    let Some(case) = cases.iter().find(|case| case.clause.name == name) else {
        panic!("there is no clause {name:?}");
    };
    if let Some(why) = missing {
        // Not `eprintln`, which the test runner would hide.
        let _ = writeln!(std::io::stderr(), "skipped {name}: {why}");
        return;
    }
    let verdict = verdict(|| judge(&case.look));
    if verdict != Verdict::Holds {
        let mut text = String::new();
        let _ = explain(&mut text, &case.clause, &verdict); // writing to a string does not fail
        panic!("{text}");
    }
}

pub(crate) fn verdict(judge: impl FnOnce() -> Result<(), Breach>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(judge)) {
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
