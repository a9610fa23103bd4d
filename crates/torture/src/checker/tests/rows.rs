//! Rows that no outage and no freeze explains.

use super::*;

/// The whole history in one outage, with everybody frozen.
fn in_the_dark(history: &History) -> History {
    with(history, |h| {
        h.outages = vec![span(0, 1000)];
        h.supervisors.iter_mut().for_each(|s| s.frozen = vec![freeze(0, 1000)]);
    })
}

#[track_caller]
fn expect_always(history: &History, violations: &[Violation]) {
    expect(history, violations);
    expect(&in_the_dark(history), violations);
}

#[test]
fn a_step_that_the_table_has_not() {
    for steps in [
        &[QUEUED, RUNNING, SUCCEEDED][..],
        &[QUEUED, ("starting", "user:resume"), RUNNING, SUCCEEDED],
        &[("running", "executor:launched"), SUCCEEDED],
    ] {
        let history = with(&good(), |h| h.tasks = vec![task("t", steps)]);
        for history in [in_the_dark(&history), history] {
            let found = check(&history);
            assert!(found.iter().any(|f| f.violation == Violation::IllegalStep), "{steps:?}");
        }
    }
}

#[test]
fn versions_with_a_gap_or_twice_and_rows_that_do_not_join() {
    let changed = |change: fn(&mut Task)| with(&good(), |h| change(&mut h.tasks[0]));
    let broken = [Violation::BrokenTrail];
    expect_always(&changed(|t| drop(t.rows.remove(2))), &broken);
    expect_always(&changed(|t| t.rows[1].version = 1), &[Violation::BrokenTrail; 2]);
    expect_always(&changed(|t| t.version = 5), &broken);
    expect_always(&changed(|t| drop(t.rows.pop())), &broken);
    expect_always(&changed(|t| t.rows.insert(1, t.rows[1].clone())), &broken);
}

#[test]
fn a_row_after_the_end() {
    let steps = [QUEUED, STARTING, RUNNING, SUCCEEDED, ("failed", "executor:failed")];
    let history = with(&good(), |h| h.tasks = vec![task("t", &steps)]);
    expect_always(&history, &[Violation::AfterTerminal]);
}

#[test]
fn a_command_with_two_effects_and_a_refused_one_with_any() {
    let stopped = |id: &str| {
        let mut task = task(id, &[QUEUED, STOPPED]);
        task.rows[1].reason = Some("m1".into());
        task
    };
    let once = with(&good(), |h| h.tasks.push(stopped("u")));
    expect(&once, &[]);
    let answered =
        |accepted| with(&once, |h| h.answers = vec![Answer { reason: "m1".into(), accepted }]);
    expect(&answered(true), &[]);
    expect_always(&answered(false), &[Violation::CommandTwice]);
    let twice = with(&once, |h| h.tasks.push(stopped("v")));
    expect_always(&twice, &[Violation::CommandTwice]);
    // Its first holder fell silent, so another was asked, too.
    expect(&with(&twice, |h| h.commands = vec!["m1".into(); 2]), &[]);
}

#[test]
fn a_success_that_nobody_earned() {
    let unearned = with(&good(), |h| drop(h.marks.pop()));
    expect_always(&unearned, &[Violation::SuccessUnearned]);
    // Somebody else's body, who does not hold the task, earned nothing for its holder.
    let anothers = with(&good(), |h| h.marks[1].supervisor = 2);
    expect_always(&anothers, &[Violation::SuccessUnearned]);
}

#[test]
fn a_success_that_was_only_claimed() {
    let claimed = with(&good(), |h| {
        h.tasks = vec![task("t", &[QUEUED, STARTING, RUNNING, ("failed", "executor:failed")])];
        h.supervisors[0].task = Some("t".into());
        h.supervisors[0].life.to = 5 * SECOND;
        h.supervisors[0].was_killed = false;
        h.supervisors[0].claims_success = true;
    });
    expect(&claimed, &[Violation::PromiseBroken]);
    expect(&with(&claimed, |h| h.outages = vec![span(40, 60)]), &[]);
    // Once the store was back, the end had to be written.
    expect(&with(&claimed, |h| h.outages = vec![span(20, 45)]), &[Violation::PromiseBroken]);
    expect(&with(&claimed, |h| h.outages = vec![span(60, 80)]), &[Violation::PromiseBroken]);
}
