//! A body that does not listen is ended, or given up and replaced.

use chongming_core::{AttemptEnd, Signal, Value};

use crate::breach::{Breach, Outcome, same};
use crate::executor::attempt::{Attempt, Event};
use crate::executor::stage::Stage;

fn killed(stage: &Stage<'_>) -> Outcome<Attempt> {
    let attempt = stage.launch_guest("deaf")?;
    attempt.stop("you may");
    attempt.signal(Signal::Kill);
    Ok(attempt)
}

pub(in crate::executor) fn it_ends_a_deaf_body_or_claims_no_end(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = killed(&stage)?;
    if stage.executor().abilities().hard_stop {
        // Without being let go.
        let is_interrupted = matches!(attempt.end()?, AttemptEnd::Interrupted { .. });
        return same("whether it ends as interrupted", is_interrupted, true);
    }
    if let Some(event) = attempt.already() {
        let seen = format_args!("{event:?}");
        return Err(Breach::of("a body that cannot be killed", "no end is claimed", seen));
    }
    // What it returns in the end is its result: it never looked.
    attempt.hang_up();
    let has_completed = matches!(attempt.end()?, AttemptEnd::Completed(_));
    same("whether its late end is told as it was", has_completed, true)
}

pub(in crate::executor) fn what_was_given_up_is_replaced(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let given_up: Outcome<Vec<_>> = (0..2 * threads + 4).map(|_| killed(&stage)).collect();
    let given_up = given_up?;
    let mut next = stage.launch("echo", 7)?;
    same("the one after them", next.end()?, AttemptEnd::Completed(Value::Int(7)))?;
    drop(given_up);
    Ok(())
}

pub(in crate::executor) fn it_ends_a_pause(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("sleep")?;
    attempt.signal(Signal::Pause { epoch: 1 });
    attempt.until_paused(1)?;
    attempt.signal(Signal::Kill);
    let end = attempt.end()?;
    same("whether it ends", matches!(end, AttemptEnd::Interrupted { .. }), true)?;
    let more = attempt.rest()?;
    same("what comes after", more.iter().any(|e| matches!(e, Event::Report(_))), false)
}
