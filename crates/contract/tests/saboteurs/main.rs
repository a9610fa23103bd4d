//! The contract itself is tested by stores that break one clause each: the case of that clause must notice.
//! A file for each group of clauses; `store` is the store that they spoil.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
mod store;

mod batch;
mod close;
mod command;
mod concurrency;
mod create;
mod facts;
mod node;
mod paging;
mod prune;
mod query;
mod save;
mod serialization;
mod touch;
mod trail;

use std::collections::BTreeSet;

use chongming_contract::{CLAUSES, Verdict, check, run};

use store::{Fault, HONEST, Sabotaged};

/// Clauses that some saboteur breaks.
fn broken_by_saboteurs() -> Vec<String> {
    [
        batch::CLAUSES,
        close::CLAUSES,
        command::CLAUSES,
        concurrency::CLAUSES,
        create::CLAUSES,
        facts::CLAUSES,
        node::CLAUSES,
        paging::CLAUSES,
        prune::CLAUSES,
        query::CLAUSES,
        save::CLAUSES,
        serialization::CLAUSES,
        touch::CLAUSES,
        trail::CLAUSES,
    ]
    .concat()
    .into_iter()
    .map(|(group, clause)| clause_name(group, clause))
    .collect()
}

/// `saboteurs::node` and `beat_renews` make `node::beat_renews`.
fn clause_name(module: &str, clause: &str) -> String {
    format!("{}::{clause}", module.rsplit("::").next().unwrap())
}

/// The case of the clause must say that it is broken, by a breach that says what was seen.
#[track_caller]
fn assert_caught(module: &str, clause: &str, fault: Fault) {
    let name = clause_name(module, clause);
    let clause = CLAUSES.iter().find(|clause| clause.name == name).unwrap();
    match check(clause, &Sabotaged(fault)).unwrap() {
        Verdict::Broken(breach) => assert_ne!(breach.expected, breach.seen, "{breach}"),
        other => panic!("{name} did not notice: {other:?}"),
    }
}

#[test]
fn an_honest_store_passes() {
    let report = run(&Sabotaged(HONEST));
    assert!(report.passed(), "{report}");
}

#[test]
fn every_clause_has_a_saboteur_and_a_name_of_its_own() {
    let names: BTreeSet<String> = CLAUSES.iter().map(|clause| clause.name.to_owned()).collect();
    assert_eq!(names.len(), CLAUSES.len());
    assert_eq!(broken_by_saboteurs().into_iter().collect::<BTreeSet<_>>(), names);
}

#[test]
fn a_breach_says_what_was_expected_and_why() {
    let ignores_versions = Fault { write: save::ignores_versions, ..HONEST };
    let text = run(&Sabotaged(ignores_versions)).to_string();
    for part in [
        "save::other_version_is_a_conflict: A save with another version",
        "because:  there is one writer",
        "expected:",
        "seen:",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
