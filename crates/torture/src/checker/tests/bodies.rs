//! Bodies that ran when they should not have.

use super::*;

#[test]
fn a_body_without_a_stored_start() {
    let twice = with(&good(), |h| {
        let waits = ("retry_wait", "executor:failed");
        h.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, waits])];
        h.marks[1] = mark(Moment::Begin, 2, 1, 45);
    });
    let never = &[Violation::NeverStarted];
    expect(&twice, never);
    // Its start had nowhere to be written. But its supervisor lived on, and nobody took the task.
    let in_outage = with(&twice, |h| h.outages = vec![span(42, 60)]);
    expect(&in_outage, never);
    let killed = |at| with(&in_outage, |h| h.supervisors[0].life.to = at * SECOND / 10);
    expect(&killed(55), &[]);
    expect(&killed(120), never);
    // Another outage than that in which it began explains nothing.
    expect(&with(&killed(55), |h| h.outages = vec![span(52, 60)]), never);
    expect(&with(&killed(55), |h| h.outages = vec![span(0, 20), span(52, 60)]), never);
    let unknown = with(&good(), |h| h.tasks.clear());
    expect(&unknown, never);
}

#[test]
fn a_body_whose_task_was_ended_from_outside_before_its_start_could_be_written() {
    let direct = |second: i64| {
        with(&good(), |h| {
            h.tasks = vec![task("t", &[QUEUED, ("cancelled", "user:cancel")])];
            h.tasks[0].rows[1].at = second * SECOND;
            h.marks.truncate(1);
            h.outages = vec![span(20, 40)];
            h.supervisors[0].frozen = vec![freeze(35, 70)];
        })
    };
    expect(&direct(6), &[]);
    expect(&direct(9), &[Violation::NeverStarted]);
    expect(&with(&direct(6), |h| h.outages.clear()), &[Violation::NeverStarted]);
}

#[test]
fn a_body_under_an_id_that_is_anothers() {
    // Supervisor 2 has the task; supervisor 1 came while nobody could look.
    let unknown = with(&good(), |h| {
        h.tasks = vec![task("t", &[QUEUED])];
        h.tasks[0].supervisor = Some("i2".into());
        h.marks.truncate(1);
        h.outages = vec![span(20, 40)];
        h.supervisors[0].life.from = 15 * SECOND / 10;
    });
    expect(&unknown, &[]);
    let never = &[Violation::NeverStarted];
    expect(&with(&unknown, |h| h.supervisors[0].life.from = -80 * SECOND), never);
    expect(&with(&unknown, |h| h.outages = vec![span(0, 10)]), never);
    expect(&with(&unknown, |h| h.tasks[0].supervisor = Some("i1".into())), never);
}

#[test]
fn an_attempt_that_ran_twice() {
    let twice = with(&good(), |h| h.marks.insert(1, mark(Moment::Begin, 1, 2, 35)));
    expect(&twice, &[Violation::AttemptTwice]);
    // An outage explains it if one of the two could not be written, and no longer.
    let in_outage = with(&twice, |h| h.outages = vec![span(32, 60)]);
    expect(&in_outage, &[Violation::AttemptTwice]);
    expect(&with(&in_outage, |h| h.supervisors[1].life.to = 5 * SECOND), &[]);
}

/// A task that supervisor 2 took over at second 5 and started at second 6, while the body of supervisor 1, which
/// had begun at second 3, was still there.
fn overlapping() -> History {
    let steps = [
        QUEUED,
        STARTING,
        RUNNING,
        ("retry_wait", "executor:failed"),
        ("queued", "recovery:adopted"),
        STARTING,
        RUNNING,
        SUCCEEDED,
    ];
    with(&good(), |h| {
        h.tasks = vec![task("t", &steps)];
        h.tasks[0].supervisor = Some("i2".into());
        let second = [mark(Moment::BeginBeside, 2, 2, 70), mark(Moment::Success, 2, 2, 80)];
        h.marks.truncate(1);
        h.marks.extend(second);
    })
}

/// Whether the task was rightly taken over is another question.
#[track_caller]
fn expect_overlaps(history: &History, count: usize) {
    let mut findings = check(history);
    findings.retain(|finding| finding.violation != Violation::LiveTaken);
    assert!(findings.iter().all(|f| f.violation == Violation::Overlap), "{findings:#?}");
    assert_eq!(findings.len(), count, "{findings:#?}");
}

#[test]
fn attempts_that_overlap() {
    expect_overlaps(&overlapping(), 1);
    // The one exception: the first holder was cut off while its lease ran out and another took the task.
    let frozen =
        |from, to| with(&overlapping(), |h| h.supervisors[0].frozen = vec![freeze(from, to)]);
    let out = |from, to| with(&overlapping(), |h| h.outages = vec![span(from, to)]);
    expect_overlaps(&frozen(32, 75), 0);
    expect_overlaps(&out(32, 50), 0);
    // Not in time for the take-over; only for the one who took it; too short; no take-over at all.
    for (from, to) in [(45, 90), (0, 20), (40, 52)] {
        expect_overlaps(&frozen(from, to), 1);
        expect_overlaps(&out(from, to), 1);
    }
    let another = with(&overlapping(), |h| h.supervisors[1].frozen = vec![freeze(32, 75)]);
    expect_overlaps(&another, 1);
    let retried =
        with(&frozen(32, 75), |h| h.tasks[0].rows[4].trigger = "runtime:retry_due".into());
    expect_overlaps(&retried, 1);
    // A dead holder's body must be gone.
    expect_overlaps(&with(&overlapping(), |h| h.supervisors[0].life.to = 32 * SECOND / 10), 1);
    let own = with(&frozen(32, 75), |h| {
        h.marks[1].supervisor = 1;
        h.marks[2].supervisor = 1;
        h.tasks[0].supervisor = Some("i1".into());
    });
    expect_overlaps(&own, 1);
    // A later attempt of the one who took it, while the first is still there.
    let third = |ended: Option<i64>| {
        with(&frozen(32, 75), |h| {
            h.tasks[0].rows[6].to = "retry_wait".into();
            h.marks[2].what = Moment::End;
            h.marks[2].at = ended.unwrap_or(80) * SECOND / 10;
            h.marks[2].began = h.marks[1].began;
            h.marks.push(mark(Moment::BeginBeside, 2, 2, 76));
        })
    };
    let overlaps = |history: &History| {
        check(history).iter().filter(|f| f.violation == Violation::Overlap).count()
    };
    assert_eq!(overlaps(&third(Some(75))), 0);
    assert_eq!(overlaps(&third(None)), 1);
    let alone = with(&frozen(32, 75), |h| drop(h.marks.remove(0)));
    expect_overlaps(&alone, 1);
}

/// A task that ended at second 4, and a body of it that began at second 6.
fn late() -> History {
    with(&good(), |h| {
        h.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, LOST])];
        h.marks = vec![mark(Moment::Begin, 1, 1, 60)];
        h.supervisors[0].frozen = vec![freeze(20, 60)];
    })
}

#[test]
fn a_body_that_begins_after_the_end() {
    let after = &[Violation::BeganAfterEnd];
    // A freeze as such is no excuse: who wakes asks before anything begins.
    expect(&late(), after);
    let checked = |at: i64| {
        with(&late(), |h| {
            h.marks[0].checked = Some(at * SECOND / 100);
            h.supervisors[0].frozen[0].stopped = 201 * SECOND / 100;
        })
    };
    // The one exception: frozen between the question and the first step, and nothing else in between.
    expect(&checked(199), &[]);
    expect(&checked(201), &[]);
    // Asked long before; asked when it was frozen already, or after it had woken, or after the end.
    for at in [180, 205, 590, 595, 401] {
        expect(&checked(at), after);
    }
    // It woke long before its first step.
    expect(&with(&checked(199), |h| h.marks[0].began += 2 * SECOND / 10), after);
    // Somebody else was frozen.
    let another = with(&checked(199), |h| h.marks[0].supervisor = 2);
    expect(&another, after);
}

#[test]
fn a_body_that_begins_after_an_end_that_its_supervisor_could_not_see() {
    let after = &[Violation::BeganAfterEnd];
    let out = |from, to| with(&late(), |h| h.outages = vec![span(from, to)]);
    expect(&out(45, 70), &[]);
    // Over by then; later; or without the freeze that hid the end before the store was out of order.
    expect(&out(40, 45), after);
    expect(&out(65, 80), after);
    expect(
        &with(&out(55, 70), |h| h.supervisors[0].frozen = vec![freeze(20, 41)]),
        &[Violation::BeganAfterEnd],
    );
}
