//! A pause suspends the body, and is taken back by a resume.

use std::time::Duration;

use chongming_core::{AttemptEnd, Signal, Value};

use crate::breach::{Outcome, same};
use crate::executor::attempt::Attempt;
use crate::executor::stage::Stage;

/// A body that only claims to be paused has this long to betray itself. A sound one never takes it amiss.
const MOMENT: Duration = Duration::from_millis(50);

const INTERRUPTED: AttemptEnd = AttemptEnd::Interrupted { message: None };

pub(in crate::executor) fn any_number_of_times(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    for epoch in [1, 2, 7] {
        attempt.signal(Signal::Pause { epoch });
        attempt.steps_until_paused(epoch)?;
        attempt.signal(Signal::Resume);
        attempt.until_step()?;
    }
    attempt.hang_up();
    let has_completed = matches!(attempt.end()?, AttemptEnd::Completed(_));
    same("whether it completes after all", has_completed, true)
}

pub(in crate::executor) fn a_paused_body_stands_still(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    for epoch in 1..=3 {
        attempt.signal(Signal::Pause { epoch });
        attempt.steps_until_paused(epoch)?;
        attempt.let_go();
        attempt.stands_still(MOMENT)?;
        attempt.signal(Signal::Resume);
        // The one that was held up, and the one that it was let go for meanwhile.
        attempt.until_step()?;
        attempt.until_step()?;
    }
    Ok(())
}

pub(in crate::executor) fn it_reaches_into_a_sleep(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    paused_twice_then_stopped(stage.launch_guest("sleep")?)
}

pub(in crate::executor) fn it_reaches_an_async_body(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    paused_twice_then_stopped(stage.launch("async", Value::Null)?)
}

fn paused_twice_then_stopped(mut attempt: Attempt) -> Outcome {
    attempt.signal(Signal::Pause { epoch: 1 });
    attempt.until_paused(1)?;
    attempt.signal(Signal::Resume);
    attempt.signal(Signal::Pause { epoch: 2 });
    attempt.until_paused(2)?;
    attempt.stop("enough");
    let is_interrupted = matches!(attempt.end()?, AttemptEnd::Interrupted { .. });
    same("whether a stop ends a pause", is_interrupted, true)
}

pub(in crate::executor) fn a_resume_takes_it_back(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    attempt.signal(Signal::Pause { epoch: 1 });
    attempt.signal(Signal::Resume);
    for _ in 0..3 {
        attempt.let_go();
        attempt.until_step()?;
    }
    Ok(())
}

pub(in crate::executor) fn a_stop_ends_it(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    attempt.signal(Signal::Pause { epoch: 1 });
    attempt.steps_until_paused(1)?;
    attempt.stop("enough");
    same("the end", attempt.end()?, INTERRUPTED)
}
