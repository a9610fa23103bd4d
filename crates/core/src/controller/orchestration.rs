//! What an orchestration does to tasks that wait for one another (spec 13), and how it learns of their
//! ends. Which task is due when is for the orchestration to know; the controller only carries it out.

use std::sync::mpsc::Sender;

use crate::controller::run::TaskRun;
use crate::controller::submit::{Submit, SubmitError};
use crate::controller::{Controller, Core};
use crate::scheduler::{EndCause, Request};
use crate::task::Upstream;
use crate::text::{Text, clean};
use crate::value::Value;

/// What a blocked task is given when its upstream is ready.
#[derive(Clone, Debug, Default)]
pub struct Release {
    upstream: Upstream,
    args: Option<Result<Value, Text>>,
}

impl Release {
    /// With the results of its succeeded upstream nodes.
    #[must_use]
    pub fn new(upstream: Upstream) -> Self {
        Self { upstream, args: None }
    }

    /// With these arguments in place of those that it was submitted with. An `Err` says why there are
    /// none: then its launch fails, for this reason.
    #[must_use]
    pub fn args(mut self, args: Result<Value, Text>) -> Self {
        self.args = Some(args);
        self
    }
}

impl Controller {
    /// Everything about a submission that can be checked before it is made, whether its id is taken
    /// apart.
    ///
    /// # Errors
    /// [`SubmitError`] says what does not fit.
    pub fn validate(&self, submit: &Submit) -> Result<(), SubmitError> {
        self.inspect(submit).map(drop)
    }
}

impl TaskRun {
    /// The upstream of a [`blocked`](Submit::blocked) task is ready: it is `queued`. `false`, and nothing
    /// changed, when it is not blocked (any more).
    pub fn release(&self, release: Release) -> bool {
        self.controller.engine.with(|core, now| {
            let Core { scheduler, out, .. } = core;
            if !scheduler.release(self.key, now, out) {
                return false;
            }
            if let Some(payload) = scheduler.payload_mut(self.key) {
                payload.work.upstream = release.upstream;
                if let Some(args) = release.args {
                    payload.work.args = args;
                }
            }
            true
        })
    }

    /// The upstream of a blocked task can no longer satisfy it: it is `skipped`. `false`, and nothing
    /// changed, when it is not blocked (any more).
    pub fn skip(&self, reason: &str) -> bool {
        self.controller.engine.with(|core, now| {
            core.scheduler.skip(self.key, Some(clean(reason)), now, &mut core.out)
        })
    }

    /// Another task of its orchestration failed: it is withdrawn (`orchestrator:fail_fast`) and ends
    /// `cancelled`, at once or when its carrier is gone. `false` when it has ended.
    pub fn fail_fast(&self, reason: &str) -> bool {
        let request = Request::End(EndCause::FailFast);
        self.controller.engine.with(|core, now| {
            let reason = Some(clean(reason));
            core.scheduler.request(self.key, request, reason, None, now, &mut core.out).is_ok()
        })
    }

    /// A person withdraws it (`user:cancel`); see [`Controller::cancel`]. `false` when it has ended.
    pub fn cancel(&self, reason: Option<&str>) -> bool {
        let request = Request::End(EndCause::Cancel);
        self.controller.engine.with(|core, now| {
            let reason = reason.map(clean);
            core.scheduler.request(self.key, request, reason, None, now, &mut core.out).is_ok()
        })
    }

    /// Sends this event once the task has ended (at once, when it has) and [`outcome`](Self::outcome)
    /// tells how: one thread learns so of the ends of any number of tasks. A receiver that is gone is no
    /// error.
    pub fn notify<T: Send + 'static>(&self, to: &Sender<T>, event: T) {
        let to = to.clone();
        // Called under the controller's lock, where nothing but such a send may be done: hence no
        // callback of the user's.
        self.completion.watch(Box::new(move || drop(to.send(event))));
    }
}
