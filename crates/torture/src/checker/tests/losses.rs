//! Tasks that were declared lost.

use super::*;

/// A task whose holder was declared lost at second 4; the lease is 2 seconds.
fn lost() -> History {
    let tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, LOST])];
    History { tasks, marks: vec![mark(Moment::Begin, 1, 1, 30)], ..good() }
}

const LIVE: &[Violation] = &[Violation::LiveLost];

#[test]
fn a_live_task_declared_lost() {
    expect(&lost(), LIVE);
    let dies = |at: i64| with(&lost(), |h| h.supervisors[0].life.to = at * SECOND / 10);
    expect(&dies(20), &[]);
    // Its lease cannot have run out so soon.
    expect(&dies(30), LIVE);
    expect(&with(&dies(30), |h| h.supervisors[0].was_killed = false), &[]);
    expect(&with(&dies(50), |h| h.supervisors[0].was_killed = false), LIVE);
}

#[test]
fn a_freeze_explains_a_loss_once_the_lease_has_run_out_and_until_it_can_be_renewed() {
    let frozen =
        |by: usize, from, to| with(&lost(), |h| h.supervisors[by].frozen = vec![freeze(from, to)]);
    expect(&frozen(0, 22, 45), &[]);
    expect(&frozen(0, 18, 38), &[]);
    for (from, to) in [(30, 50), (10, 30), (-200, -100), (42, 80)] {
        expect(&frozen(0, from, to), LIVE);
    }
    expect(&frozen(1, 22, 45), LIVE);
    // Two of them count as one where there was no time between them to renew.
    let two = |between: i64| {
        with(&lost(), |h| h.supervisors[0].frozen = vec![freeze(20, 30), freeze(30 + between, 45)])
    };
    expect(&two(3), &[]);
    expect(&two(8), LIVE);
}

#[test]
fn an_outage_explains_a_loss_only_if_it_lasted_for_the_lease() {
    let out = |from, to| with(&lost(), |h| h.outages = vec![span(from, to)]);
    expect(&out(20, 39), &[]);
    for (from, to) in [(35, 50), (0, 10), (41, 80)] {
        expect(&out(from, to), LIVE);
    }
    expect(&with(&lost(), |h| h.locked = vec![span(20, 39)]), &[]);
    expect(&with(&lost(), |h| h.locked = vec![span(35, 50)]), LIVE);
    expect(&with(&lost(), |h| h.stalls = vec![span(20, 40)]), &[]);
    expect(&with(&lost(), |h| h.stalls = vec![span(35, 40)]), LIVE);
}

#[test]
fn a_holder_that_nobody_knows_is_no_excuse() {
    let dead = with(&lost(), |h| h.supervisors[0].life.to = 2 * SECOND);
    expect(&dead, &[]);
    expect(&with(&dead, |h| h.nodes.clear()), LIVE);
    expect(&with(&dead, |h| h.tasks[0].supervisor = None), LIVE);
    // Another process has its number by now.
    let again = with(&dead, |h| {
        h.supervisors.push(supervisor(3, 11));
        h.supervisors[2].life.from = 3 * SECOND;
    });
    expect(&again, &[]);
}

/// A task that waits for its second attempt, and is taken over at second 5.
fn taken() -> History {
    let adopted = ("queued", "recovery:adopted");
    let waits = ("retry_wait", "executor:failed");
    with(&good(), |h| {
        h.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, waits, adopted])];
        h.tasks[0].supervisor = Some("i2".into());
        h.marks = vec![mark(Moment::Begin, 1, 1, 30)];
    })
}

#[test]
fn a_live_task_taken_over() {
    let live = &[Violation::LiveTaken];
    expect(&taken(), live);
    let dies = |at: i64| with(&taken(), |h| h.supervisors[0].life.to = at * SECOND / 10);
    expect(&dies(31), &[]);
    expect(&dies(42), live);
    let frozen =
        |by: usize, from, to| with(&taken(), |h| h.supervisors[by].frozen = vec![freeze(from, to)]);
    expect(&frozen(0, 31, 60), &[]);
    expect(&frozen(1, 31, 60), live);
    expect(&frozen(0, 40, 60), live);
    expect(&with(&taken(), |h| h.outages = vec![span(40, 60)]), live);
    expect(&with(&taken(), |h| h.outages = vec![span(31, 47)]), &[]);
    // Taken over before that body began: it is not known who held it.
    expect(&with(&taken(), |h| h.marks[0].began = 51 * SECOND / 10), &[]);
}

#[test]
fn lost_without_an_expired_lease() {
    for trigger in ["executor:vanished", "runtime:stop_unconfirmed"] {
        let stopping = ("stopping", "user:stop");
        let history = with(&lost(), |h| {
            h.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, stopping, ("lost", trigger)])];
        });
        expect(&history, &[Violation::Vanished]);
        // A store that is down loses no carrier.
        expect(&with(&history, |h| h.outages = vec![span(20, 70)]), &[Violation::Vanished]);
        let frozen =
            |from, to| with(&history, |h| h.supervisors[0].frozen = vec![freeze(from, to)]);
        expect(&frozen(30, 49), &[]);
        expect(&frozen(30, 40), &[Violation::Vanished]);
    }
}
