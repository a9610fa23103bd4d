//! A launch runs its body once, at once, and holds up no other.

use chongming_core::{AttemptEnd, Report};

use crate::breach::{Breach, Outcome, same};
use crate::executor::attempt::{Attempt, Event};
use crate::executor::stage::Stage;

/// So many bodies must be able to run at once.
const MANY: usize = 32;

pub(in crate::executor) fn runs_its_body_once(stage: Stage<'_>) -> Outcome {
    let mut attempt = stage.start(stage.prepare_guest("visit")?)?;
    let bodies = attempt.rest()?.iter().filter(|e| matches!(e, Event::Came(_))).count();
    same("bodies that ran", bodies, 1)
}

pub(in crate::executor) fn what_may_not_begin_never_runs(stage: Stage<'_>) -> Outcome {
    let mut attempt = stage.start(stage.prepare_forbidden("visit")?)?;
    let events = attempt.rest()?;
    let bodies = events.iter().filter(|e| matches!(e, Event::Came(_))).count();
    same("bodies that ran", bodies, 0)?;
    let ends = events.iter().filter(|event| {
        matches!(event, Event::Report(Report::Ended(AttemptEnd::Interrupted { .. })))
    });
    same("reports that it was interrupted", ends.count(), 1)
}

pub(in crate::executor) fn reports_in_order(stage: Stage<'_>) -> Outcome {
    let reports = stage.launch("progress", 3_u32)?.reports()?;
    let places = |what: fn(&Report) -> bool| {
        let found = reports.iter().enumerate().filter(|(_, report)| what(report));
        found.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let launched = places(|report| matches!(report, Report::Launched));
    let ended = places(|report| matches!(report, Report::Ended(_) | Report::LaunchFailed(_)));
    if launched == [0] && ended == [reports.len() - 1] {
        return Ok(());
    }
    let seen = format_args!("{reports:?}");
    Err(Breach::of("the reports of an attempt", "Launched comes first, one Ended last", seen))
}

pub(in crate::executor) fn returns_at_once(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    // A body that waits until the launch has returned.
    let mut attempt = stage.launch_guest("deaf")?;
    attempt.hang_up();
    attempt.end().map(drop)
}

pub(in crate::executor) fn carriers_in_order(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let prepared = (0..4).map(|_| stage.prepare_guest("steps"));
    let mut attempts = stage.start_all(prepared.collect::<Outcome<_>>()?)?;
    attempts.iter_mut().try_for_each(Attempt::body_comes)?;
    for number in [2, 0, 1, 0] {
        let mut attempt = attempts.remove(number);
        attempt.stop("this one");
        let end = attempt.steps_to_end()?;
        same("the one that was stopped", end, AttemptEnd::Interrupted { message: None })?;
    }
    Ok(())
}

pub(in crate::executor) fn holds_up_no_other(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let prepared = (0..MANY).map(|_| stage.prepare_guest("deaf"));
    let mut attempts = stage.start_all(prepared.collect::<Outcome<_>>()?)?;
    attempts.iter_mut().try_for_each(Attempt::body_comes)?;
    for attempt in &mut attempts {
        attempt.hang_up();
        let has_completed = matches!(attempt.end()?, AttemptEnd::Completed(_));
        same("whether each of them completed", has_completed, true)?;
    }
    Ok(())
}
