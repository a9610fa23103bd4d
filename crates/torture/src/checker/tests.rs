use super::*;
use crate::history::Answer;

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

fn mark(what: Moment, attempt: u32, supervisor: u32, second: i64) -> Mark {
    Mark { what, task: "t".into(), attempt, supervisor, at: second * SECOND }
}

fn supervisor(number: u32, pid: u32) -> Supervisor {
    let life = Span { from: -100 * SECOND, to: 1000 * SECOND };
    Supervisor { number, pid, task: None, life, claims_success: false, frozen: Vec::new() }
}

/// A task that ran once under supervisor 1 and succeeded.
fn good() -> History {
    History {
        tasks: vec![task("t", &[QUEUED, STARTING, RUNNING, SUCCEEDED])],
        marks: vec![mark(Moment::Begin, 1, 1, 3), mark(Moment::Success, 1, 1, 4)],
        supervisors: vec![supervisor(1, 11), supervisor(2, 12)],
        nodes: vec![("i1".into(), 11), ("i2".into(), 12)],
        lease: 2 * SECOND,
        ..History::default()
    }
}

/// A task whose holder was declared lost at second 4.
fn lost() -> History {
    let tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, LOST])];
    History { tasks, marks: vec![mark(Moment::Begin, 1, 1, 3)], ..good() }
}

#[track_caller]
fn expect(history: &History, violations: &[Violation]) {
    let findings = check(history);
    let kinds: Vec<_> = findings.iter().map(|finding| finding.violation).collect();
    assert_eq!(kinds, violations, "{findings:#?}");
}

fn outage(from: i64, to: i64) -> Span {
    Span { from: from * SECOND, to: to * SECOND }
}

#[test]
fn what_is_as_it_should_be_passes() {
    expect(&good(), &[]);
    expect(&History::default(), &[]);
}

#[test]
fn a_body_without_a_stored_start() {
    let mut history = good();
    history.marks.push(mark(Moment::Begin, 2, 1, 4));
    expect(&history, &[Violation::NeverStarted]);
    // The second attempt had nowhere to be written, and its supervisor took it to the grave.
    history.outages = vec![outage(3, 5)];
    expect(&history, &[Violation::NeverStarted]);
    history.supervisors[0].life.to = 6 * SECOND;
    expect(&history, &[]);
    history.outages = vec![outage(30, 50)];
    expect(&history, &[Violation::NeverStarted]);
    let unknown = History { tasks: Vec::new(), ..good() };
    expect(&unknown, &[Violation::NeverStarted]);
}

#[test]
fn an_attempt_that_ran_twice() {
    let mut history = good();
    history.marks.insert(1, mark(Moment::Begin, 1, 2, 3));
    expect(&history, &[Violation::AttemptTwice]);
    history.outages = vec![outage(2, 3)];
    expect(&history, &[]);
}

#[test]
fn attempts_that_overlap() {
    let steps = [
        QUEUED,
        STARTING,
        RUNNING,
        ("retry_wait", "executor:failed"),
        ("queued", "runtime:retry_due"),
        STARTING,
        RUNNING,
        SUCCEEDED,
    ];
    let marks = |second| {
        let first = mark(Moment::Begin, 1, 1, 3);
        vec![first, mark(Moment::BeginBeside, 2, second, 7), mark(Moment::Success, 2, second, 8)]
    };
    let mut history = History { tasks: vec![task("t", &steps)], marks: marks(2), ..good() };
    expect(&history, &[Violation::Overlap]);
    // A holder that was frozen meanwhile is the one exception, and only for another supervisor's attempt.
    history.supervisors[0].frozen = vec![outage(4, 9)];
    expect(&history, &[]);
    history.marks = marks(1);
    expect(&history, &[Violation::Overlap]);
    history.marks.remove(0);
    expect(&history, &[Violation::Overlap]);
}

#[test]
fn a_body_that_begins_after_the_end() {
    let mut history = good();
    history.marks[0].at = 5 * SECOND;
    expect(&history, &[Violation::BeganAfterEnd]);
    // The start is of second 2. Frozen from then on, its thread made its first step when it woke.
    history.supervisors[0].frozen = vec![outage(2, 5)];
    expect(&history, &[]);
    // Frozen later, it should have begun before; awake for long, it should have looked.
    history.supervisors[0].frozen = vec![outage(3, 5)];
    expect(&history, &[Violation::BeganAfterEnd]);
    history.marks[0].at = 7 * SECOND;
    history.supervisors[0].frozen = vec![outage(2, 5)];
    expect(&history, &[Violation::BeganAfterEnd]);
}

#[test]
fn a_step_that_the_table_has_not() {
    for steps in [
        &[QUEUED, RUNNING, SUCCEEDED][..],
        &[QUEUED, ("starting", "user:resume"), RUNNING, SUCCEEDED],
        &[("running", "executor:launched"), SUCCEEDED],
    ] {
        let history = History { tasks: vec![task("t", steps)], ..good() };
        assert!(check(&history).iter().any(|f| f.violation == Violation::IllegalStep), "{steps:?}");
    }
}

#[test]
fn versions_with_a_gap_or_twice_and_rows_that_do_not_join() {
    let with = |change: fn(&mut Task)| {
        let mut history = good();
        change(&mut history.tasks[0]);
        history
    };
    let broken = [Violation::BrokenTrail];
    expect(&with(|t| drop(t.rows.remove(2))), &broken);
    expect(&with(|t| t.rows[1].version = 1), &[Violation::BrokenTrail; 2]);
    expect(&with(|t| t.version = 5), &broken);
    expect(&with(|t| drop(t.rows.pop())), &broken);
    expect(&with(|t| t.rows.insert(1, t.rows[1].clone())), &[Violation::BrokenTrail]);
}

#[test]
fn a_row_after_the_end() {
    let mut history = good();
    history.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, LOST, SUCCEEDED])];
    history.supervisors[0].life.to = 0;
    expect(&history, &[Violation::AfterTerminal]);
}

#[test]
fn a_live_task_declared_lost() {
    expect(&lost(), &[Violation::LiveLost]);
    let with = |change: fn(&mut History)| {
        let mut history = lost();
        change(&mut history);
        history
    };
    expect(&with(|h| h.supervisors[0].life.to = 3 * SECOND), &[]);
    expect(&with(|h| h.supervisors[0].frozen = vec![outage(1, 3)]), &[]);
    expect(&with(|h| h.outages = vec![outage(3, 5)]), &[]);
    // Neither another's freeze nor one long ago is an excuse.
    expect(&with(|h| h.supervisors[1].frozen = vec![outage(1, 3)]), &[Violation::LiveLost]);
    expect(&with(|h| h.supervisors[0].frozen = vec![outage(-20, -10)]), &[Violation::LiveLost]);
}

#[test]
fn lost_without_an_expired_lease() {
    let mut history = lost();
    history.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, ("lost", "executor:vanished")])];
    expect(&history, &[Violation::Vanished]);
}

#[test]
fn a_command_with_two_effects_and_a_refused_one_with_any() {
    let mut history = good();
    let mut stopped = |id: &str| {
        let mut task = task(id, &[QUEUED, STOPPED]);
        task.rows[1].reason = Some("m1".into());
        history.tasks.push(task);
    };
    stopped("u");
    expect(&history, &[]);
    let mut refused = history.clone();
    refused.answers = vec![Answer { reason: "m1".into(), accepted: false }];
    expect(&refused, &[Violation::CommandTwice]);
    refused.answers[0].accepted = true;
    expect(&refused, &[]);
    let mut twice = task("v", &[QUEUED, STOPPED]);
    twice.rows[1].reason = Some("m1".into());
    history.tasks.push(twice);
    expect(&history, &[Violation::CommandTwice]);
    // Its first holder fell silent, so another was asked, too.
    history.commands = vec!["m1".into(); 2];
    expect(&history, &[]);
}

#[test]
fn a_success_that_nobody_earned_or_that_was_only_claimed() {
    let mut unearned = good();
    unearned.marks.pop();
    expect(&unearned, &[Violation::SuccessUnearned]);
    let mut claimed = lost();
    claimed.supervisors[0].life.to = 3 * SECOND;
    claimed.supervisors[0].task = Some("t".into());
    claimed.supervisors[0].claims_success = true;
    expect(&claimed, &[Violation::PromiseBroken]);
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
}
