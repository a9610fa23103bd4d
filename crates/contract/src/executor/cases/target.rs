//! What an executor can carry is known before it is launched.

use std::sync::Arc;

use chongming_core::{FailureKind, Report, Target, Value};

use super::result;
use crate::breach::{Breach, Outcome, same};
use crate::executor::stage::Stage;

/// Something that no executor knows.
struct Riddle;

fn riddle() -> Target {
    Target::External(Arc::new(Riddle))
}

pub(in crate::executor) fn what_it_carries_is_accepted(stage: Stage<'_>) -> Outcome {
    let refused = stage.executor().check(&stage.target("echo")?).err();
    same("the refusal of a body of the suite", refused, None)
}

pub(in crate::executor) fn what_it_cannot_carry_is_refused(stage: Stage<'_>) -> Outcome {
    match stage.executor().check(&riddle()) {
        Err(refusal) => same("whether the refusal says nothing", refusal.0.is_empty(), false),
        Ok(()) => Err(Breach::of("a target that no executor knows", "it is refused", "accepted")),
    }
}

pub(in crate::executor) fn a_launch_of_it_fails(stage: Stage<'_>) -> Outcome {
    let (prepared, _) = stage.prepare_target("riddle", riddle(), Value::Null)?;
    let reports = stage.start(prepared)?.reports()?;
    match reports.as_slice() {
        [Report::LaunchFailed(failure)] => {
            same("the kind of failure", failure.kind, FailureKind::LaunchFailed)?;
        }
        _ => {
            let seen = format_args!("{reports:?}");
            return Err(Breach::of("the reports", "LaunchFailed alone", seen));
        }
    }
    result::null_is_a_value(stage)
}
