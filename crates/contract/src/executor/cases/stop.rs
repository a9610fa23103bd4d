//! A stop is a request, and the end says whether it was heard.

use chongming_core::{AttemptEnd, Report, Signal, Value};

use crate::breach::{Breach, Outcome, same};
use crate::executor::stage::Stage;

const INTERRUPTED: AttemptEnd = AttemptEnd::Interrupted { message: None };

pub(in crate::executor) fn a_checkpoint_obeys(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    attempt.stop("enough");
    same("the end", attempt.steps_to_end()?, INTERRUPTED)
}

pub(in crate::executor) fn its_reason_is_told(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("sleep")?;
    attempt.stop("release window 维护");
    let message = Some("told: interrupted: release window 维护".into());
    same("the end", attempt.end()?, AttemptEnd::Interrupted { message })
}

pub(in crate::executor) fn an_early_one_is_kept(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    for _ in 0..20 {
        let mut attempt = stage.launch("async", Value::Null)?;
        attempt.stop("at once");
        let reports = attempt.reports()?;
        // What it says about it is the executor's.
        let is_interruption =
            |report: &Report| matches!(report, Report::Ended(AttemptEnd::Interrupted { .. }));
        let is_sound = match reports.as_slice() {
            [end] => is_interruption(end),
            [Report::Launched, between @ .., end] => {
                is_interruption(end) && between.iter().all(|report| *report == Report::Activity)
            }
            _ => false,
        };
        if !is_sound {
            let seen = format_args!("{reports:?}");
            return Err(Breach::of("the reports", "it ends as interrupted", seen));
        }
    }
    Ok(())
}

pub(in crate::executor) fn a_result_before_it_was_seen_counts(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("deaf")?;
    attempt.stop("too late");
    attempt.hang_up();
    let has_completed = matches!(attempt.end()?, AttemptEnd::Completed(_));
    same("whether a body that never looked completed", has_completed, true)
}

pub(in crate::executor) fn an_error_after_it_was_seen_confirms(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("look")?;
    attempt.stop("now");
    let message = Some("ended by itself".into());
    same("the end", attempt.steps_to_end()?, AttemptEnd::Interrupted { message })
}

pub(in crate::executor) fn late_signals_change_nothing(stage: Stage<'_>) -> Outcome {
    stage.signals_come_too_late()
}

pub(in crate::executor) fn a_second_one_changes_nothing(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    attempt.stop("first");
    attempt.stop("second");
    attempt.signal(Signal::Pause { epoch: 1 });
    same("the end", attempt.steps_to_end()?, INTERRUPTED)?;
    let ends = attempt.reports()?;
    same("reports after the end", ends, Vec::new())
}
