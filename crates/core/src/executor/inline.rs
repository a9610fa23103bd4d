//! Runs a body on the thread that launches it: for tests (spec 7).

use std::sync::Arc;

use crate::executor::thread::functions_only;
use crate::executor::{
    Abilities, Carrier, Executor, Launch, Report, Signal, Target, UnsupportedTarget,
};
use crate::failure::{Failure, FailureKind};
use crate::task::{Control, TaskContext, run_body};

/// Runs each body to its end before anything else happens: one after the other, in the order of
/// dispatch. A body cannot be stopped or paused while it runs, since nobody is left to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineExecutor;

struct Gone;

impl Carrier for Gone {
    fn signal(&self, _: Signal) {}
}

impl Executor for InlineExecutor {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn abilities(&self) -> Abilities {
        Abilities { hard_stop: false, isolation: false }
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        functions_only(self.name(), target)
    }

    fn launch(&self, launch: Launch) -> Arc<dyn Carrier> {
        let report = match &launch.target {
            Target::Function(body) => {
                launch.sink.report(Report::Launched);
                let control = Arc::new(Control::default());
                let context = TaskContext::new(&launch, Arc::clone(&control));
                Report::Ended(run_body(body, &context, &control, launch.args))
            }
            Target::External(_) => Report::LaunchFailed(Failure::new(
                FailureKind::LaunchFailed,
                "the inline executor runs Rust functions only",
            )),
        };
        launch.sink.report(report);
        Arc::new(Gone)
    }
}
