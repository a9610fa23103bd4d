//! What time alone brings: one timer for each task that has any (spec 2, 6).

use std::time::Duration;

use crate::executor::Signal;
use crate::failure::{Failure, FailureKind};
use crate::scheduler::Scheduler;
use crate::scheduler::action::{Action, EndCause};
use crate::scheduler::slab::TaskKey;
use crate::scheduler::task::Phase;
use crate::status::Status;
use crate::time::Moment;
use crate::transition::Trigger;

/// How long a killed carrier may take to be gone before its task counts as lost.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(10);

impl<P> Scheduler<P> {
    /// The next moment at which [`tick`](Self::tick) has something to do.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Does what is due. Follow with [`dispatch`](Self::dispatch).
    pub fn tick(&mut self, now: Moment, out: &mut Vec<Action<P>>) {
        while let Some((due, key)) =
            self.timers.first().copied().filter(|(due, _)| *due <= now.mono)
        {
            self.timers.remove(&(due, key));
            if let Some(task) = self.tasks.get_mut(key) {
                task.due = None;
            }
            self.due(key, now, out);
            self.rearm(key);
        }
    }

    /// Files the task under its next moment.
    pub(super) fn rearm(&mut self, key: TaskKey) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let due = task.next_due();
        if due == task.due {
            return;
        }
        if let Some(old) = task.due {
            self.timers.remove(&(old, key));
        }
        if let Some(new) = due {
            self.timers.insert((new, key));
        }
        task.due = due;
    }

    fn due(&mut self, key: TaskKey, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get(key) else { return };
        match &task.phase {
            Phase::Idle => {}
            Phase::Queued { .. } => {
                if task.start_by.is_some_and(|by| by <= now.mono) {
                    self.start_timed_out(key, now, out);
                }
            }
            Phase::RetryWait { due } => {
                if *due <= now.mono {
                    self.enqueue(key, Trigger::RetryDue, now, out);
                }
            }
            Phase::Carried(carried) => {
                let timeout = task.policy.timeout;
                let is_over = |due: Option<Duration>| due.is_some_and(|due| due <= now.mono);
                if carried.stop.is_some() {
                    self.stop_due(key, now, out);
                } else if is_over(carried.attempt_due(timeout.per_attempt)) {
                    let limit = timeout.per_attempt.unwrap_or_default();
                    let reason = format!("the attempt took longer than {limit:?}");
                    self.timed_out(key, EndCause::TimeoutAttempt, &reason, now, out);
                } else if is_over(carried.idle_due(timeout.idle)) {
                    let limit = timeout.idle.unwrap_or_default();
                    let reason = format!("no sign of life for more than {limit:?}");
                    self.timed_out(key, EndCause::TimeoutIdle, &reason, now, out);
                } else if carried.pause.as_ref().is_some_and(|pause| pause.by <= now.mono) {
                    self.unpause(key, Trigger::PauseUnconfirmed, None, now, out);
                }
            }
        }
    }

    fn start_timed_out(&mut self, key: TaskKey, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let limit = task.policy.timeout.start.unwrap_or_default();
        let message = format!("it was not started within {limit:?}");
        task.state_mut().failure = Some(Box::new(Failure::new(FailureKind::TimeoutStart, message)));
        self.step(key, Status::Failed, Trigger::TimeoutStart, None, now.wall, out);
        self.ended(key, out);
    }

    fn timed_out(
        &mut self,
        key: TaskKey,
        cause: EndCause,
        reason: &str,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        self.begin_stop(key, cause, Some(reason.into()), now, out);
        self.confirm_unlaunched(key, now, out);
    }

    /// The grace is used up: kill what can be killed; what cannot, or survived, is lost.
    pub(super) fn stop_due(&mut self, key: TaskKey, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let (hard_stop, grace) = (task.policy.hard_stop, task.policy.grace);
        let Some(stop) = task.carried_mut().and_then(|carried| carried.stop.as_mut()) else {
            return;
        };
        if stop.by > now.mono {
            return;
        }
        let was_killed = std::mem::replace(&mut stop.killed, true);
        if hard_stop && !was_killed {
            stop.by = now.mono.saturating_add(KILL_PATIENCE);
            out.push(Action::Signal(key, Signal::Kill));
            return;
        }
        let message = if hard_stop {
            format!("its carrier was killed, but was still there {KILL_PATIENCE:?} later")
        } else {
            out.push(Action::Signal(key, Signal::Kill));
            format!("it did not end within {grace:?} of being told to stop, and cannot be killed")
        };
        self.lost(key, Trigger::StopUnconfirmed, &message, now, out);
    }
}
