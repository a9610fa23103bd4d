//! [`TaskRun`]: one submitted task in the hands of its submitter (spec 6).

use std::sync::Arc;
use std::time::Duration;

use crate::controller::handle::{Completion, Outcome, WaitTimedOut};
use crate::controller::{ControlError, Controller};
use crate::id::TaskId;
use crate::scheduler::TaskKey;
use crate::snapshot::TaskSnapshot;
use crate::store::StoreError;
use crate::transition::Transition;

/// One submitted task. Dropping it changes nothing about the task.
#[derive(Clone)]
pub struct TaskRun {
    pub(super) controller: Controller,
    pub(super) key: TaskKey,
    pub(super) id: TaskId,
    pub(super) completion: Arc<Completion>,
}

impl TaskRun {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Waits for its end, which is in the store by then; without a time, as long as it takes.
    ///
    /// # Errors
    /// [`WaitTimedOut`]: the time ran out; the task is not affected.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Arc<Outcome>, WaitTimedOut> {
        let end = self.completion.wait_ended(timeout).ok_or(WaitTimedOut)?;
        if !end.disowned {
            return Ok(end.outcome);
        }
        // Somebody else wrote its end.
        match self.controller.get(&self.id) {
            Ok(Some(snapshot)) if snapshot.is_same_task(&end.outcome.snapshot) => {
                Ok(Arc::new(Outcome { snapshot: snapshot.into() }))
            }
            Ok(_) | Err(_) => Ok(end.outcome),
        }
    }

    /// How it ended; `None` while it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        self.wait(Some(Duration::ZERO)).ok()
    }

    /// Its state right now, written or not.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<TaskSnapshot>> {
        let current =
            self.controller.engine.with(|core, _| core.scheduler.snapshot(self.key).cloned());
        current.or_else(|| self.outcome().map(|outcome| Arc::clone(&outcome.snapshot)))
    }

    /// Its trail, as far as it is written.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn transitions(&self) -> Result<Vec<Transition>, StoreError> {
        self.controller.history(&self.id)
    }

    /// Asks it to stop. `Ok` = the request was accepted; [`wait`](Self::wait) tells how it ended.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn stop(&self, reason: Option<&str>) -> Result<(), ControlError> {
        self.controller.stop(&self.id, reason)
    }

    /// Gives a stop that is under way no more time: what can be killed is killed now.
    pub fn kill(&self) {
        self.controller.engine.with(|core, now| {
            core.scheduler.hasten(self.key, now, &mut core.out);
        });
    }

    /// Asks it to pause: `true` = it is `paused`; `false` = it did not get there within the limit and is
    /// `running` again.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn pause(&self, limit: Duration) -> Result<bool, ControlError> {
        self.controller.pause(&self.id, Some(limit), None)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn resume(&self) -> Result<(), ControlError> {
        self.controller.resume(&self.id, None)
    }
}
