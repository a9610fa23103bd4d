//! How an attempt ended, as its executor tells it.

use chongming_core::{AttemptEnd, Failure, FailureKind, Value};

use super::input::everything;
use crate::breach::{Breach, Outcome, same};
use crate::executor::stage::Stage;

/// What a body's failure must be reported as.
fn fails(stage: &Stage<'_>, body: &str, args: impl Into<Value>, failure: Failure) -> Outcome {
    same("the end", stage.launch(body, args)?.end()?, AttemptEnd::Failed(failure))
}

/// The kind of failure that a body must end with; the words are the executor's.
fn fails_as(
    stage: &Stage<'_>,
    body: &str,
    args: impl Into<Value>,
    (kind, retryable): (FailureKind, bool),
) -> Outcome {
    match stage.launch(body, args)?.end()? {
        AttemptEnd::Failed(failure) => {
            let seen = (failure.kind, failure.retryable, failure.message.is_empty());
            same("kind, retryable, and whether it says nothing", seen, (kind, retryable, false))
        }
        end @ (AttemptEnd::Completed(_)
        | AttemptEnd::Interrupted { .. }
        | AttemptEnd::Unkillable { .. }
        | AttemptEnd::Vanished { .. }) => {
            let expected = format_args!("a failure of kind {kind}");
            Err(Breach::of("the end", expected, format_args!("{end:?}")))
        }
    }
}

pub(in crate::executor) fn the_value_is_delivered(stage: Stage<'_>) -> Outcome {
    for value in [everything(), Value::List(vec![everything()]), Value::String(String::new())] {
        let end = stage.launch("echo", value.clone())?.end()?;
        same("the end", end, AttemptEnd::Completed(value))?;
    }
    let mut deepest = stage.launch("nested", 128_u32)?;
    let is_completed = matches!(deepest.end()?, AttemptEnd::Completed(_));
    same("whether a result nested 128 deep is delivered", is_completed, true)
}

pub(in crate::executor) fn null_is_a_value(stage: Stage<'_>) -> Outcome {
    let end = stage.launch("echo", Value::Null)?.end()?;
    same("the end", end, AttemptEnd::Completed(Value::Null))
}

pub(in crate::executor) fn an_error_is_an_exception(stage: Stage<'_>) -> Outcome {
    let message = "the bank says: 没有\nno";
    fails(&stage, "error", message, Failure::new(FailureKind::Exception, message))
}

pub(in crate::executor) fn a_permanent_error_is_not_retryable(stage: Stage<'_>) -> Outcome {
    let failure = Failure::new(FailureKind::Exception, "never again").permanent();
    fails(&stage, "permanent_error", "never again", failure)
}

pub(in crate::executor) fn a_panic_is_a_failure(stage: Stage<'_>) -> Outcome {
    for _ in 0..3 {
        fails(&stage, "panic", "at the disco", Failure::new(FailureKind::Panic, "at the disco"))?;
    }
    null_is_a_value(stage)
}

pub(in crate::executor) fn what_json_cannot_say_is_invalid(stage: Stage<'_>) -> Outcome {
    let expected = (FailureKind::ResultInvalid, false);
    fails_as(&stage, "nan", Value::Null, expected)?;
    fails_as(&stage, "nested", 129_u32, expected)
}

pub(in crate::executor) fn arguments_that_do_not_fit_are_permanent(stage: Stage<'_>) -> Outcome {
    fails_as(&stage, "number", "seven", (FailureKind::Exception, false))
}

pub(in crate::executor) fn a_crash_harms_nobody(stage: Stage<'_>) -> Outcome {
    if stage.executor().abilities().isolation {
        let end = stage.launch("crash", Value::Null)?.end()?;
        let is_told = match &end {
            AttemptEnd::Failed(failure) => failure.kind == FailureKind::Crashed,
            AttemptEnd::Vanished { .. } => true,
            AttemptEnd::Completed(_)
            | AttemptEnd::Interrupted { .. }
            | AttemptEnd::Unkillable { .. } => false,
        };
        if !is_told {
            let seen = format_args!("{end:?}");
            return Err(Breach::of("the end", "a failure of kind crashed", seen));
        }
    }
    null_is_a_value(stage)
}
