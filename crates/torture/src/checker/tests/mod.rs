//! Made-up histories, each with a fault that must be found, also beside what does not explain it.

mod bodies;
mod losses;
mod rows;

use super::*;
use crate::history::{Answer, Freeze, Node, Span, Supervisor};

const SECOND: Micros = 1_000_000;

/// The trail of these steps, one a second.
fn task(id: &str, steps: &[(&str, &str)]) -> Task {
    let mut from = "pending".to_owned();
    let mut rows = Vec::new();
    for (i, (to, trigger)) in steps.iter().enumerate() {
        let version = i as u64 + 1;
        let at = i64::try_from(version).unwrap() * SECOND;
        rows.push(Row {
            version,
            from: std::mem::replace(&mut from, (*to).to_owned()),
            to: (*to).to_owned(),
            at,
            trigger: (*trigger).to_owned(),
            reason: None,
        });
    }
    Task {
        id: id.into(),
        status: from,
        version: rows.len() as u64,
        supervisor: Some("i1".into()),
        rows,
    }
}

const QUEUED: (&str, &str) = ("queued", "orchestrator:dependencies_resolved");
const STARTING: (&str, &str) = ("starting", "scheduler:dispatch");
const RUNNING: (&str, &str) = ("running", "executor:launched");
const SUCCEEDED: (&str, &str) = ("succeeded", "executor:completed");
const LOST: (&str, &str) = ("lost", "recovery:lease_expired");
const STOPPED: (&str, &str) = ("stopped", "user:stop");

/// What a body wrote down at its first step, in tenths of a second.
fn mark(what: Moment, attempt: u32, supervisor: u32, tenths: i64) -> Mark {
    let at = tenths * SECOND / 10;
    Mark { what, task: "t".into(), attempt, supervisor, checked: None, began: at, at }
}

fn supervisor(number: u32, pid: u32) -> Supervisor {
    let life = Span { from: -100 * SECOND, to: 1000 * SECOND };
    let (task, was_killed, claims_success, frozen) = (None, true, false, Vec::new());
    Supervisor { number, pid, task, life, was_killed, claims_success, frozen }
}

/// A task that ran once under supervisor 1 and succeeded.
fn good() -> History {
    History {
        tasks: vec![task("t", &[QUEUED, STARTING, RUNNING, SUCCEEDED])],
        marks: vec![mark(Moment::Begin, 1, 1, 30), mark(Moment::Success, 1, 1, 40)],
        supervisors: vec![supervisor(1, 11), supervisor(2, 12)],
        nodes: [("i1", 11), ("i2", 12)]
            .map(|(incarnation, pid)| (incarnation.into(), Node { pid, started: -99 * SECOND }))
            .into(),
        lease: 2 * SECOND,
        ..History::default()
    }
}

/// A change of a history, of which each test makes several.
fn with(history: &History, change: impl FnOnce(&mut History)) -> History {
    let mut history = history.clone();
    change(&mut history);
    history
}

#[track_caller]
fn expect(history: &History, violations: &[Violation]) {
    let findings = check(history);
    let kinds: Vec<_> = findings.iter().map(|finding| finding.violation).collect();
    assert_eq!(kinds, violations, "{findings:#?}");
}

/// In tenths of a second.
fn span(from: i64, to: i64) -> Span {
    Span { from: from * SECOND / 10, to: to * SECOND / 10 }
}

fn freeze(from: i64, to: i64) -> Freeze {
    let Span { from, to } = span(from, to);
    Freeze { from, stopped: from, waking: to, to }
}

#[test]
fn what_is_as_it_should_be_passes() {
    expect(&good(), &[]);
    expect(&History::default(), &[]);
}

#[test]
fn what_is_left_over() {
    let mut history = good();
    history.still_locked = vec!["t".into()];
    history.stuck = vec!["supervisor 1".into()];
    history.panics = vec!["thread main panicked".into()];
    history.tasks.push(task("u", &[QUEUED, STARTING]));
    let left =
        [Violation::LeftInFlight, Violation::ChildAlive, Violation::Stuck, Violation::Panicked];
    expect(&history, &left);
    // No outage explains any of it.
    history.outages = vec![span(0, 1000)];
    expect(&history, &left);
}
