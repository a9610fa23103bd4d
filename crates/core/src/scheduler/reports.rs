//! What carriers report, and the conclusions (spec 1, 2, 6).

use crate::executor::{AttemptEnd, Report};
use crate::failure::{Failure, FailureKind};
use crate::scheduler::Scheduler;
use crate::scheduler::action::{Action, EndCause, Reply};
use crate::scheduler::slab::TaskKey;
use crate::scheduler::task::{Carrier, Phase, Stop};
use crate::status::Status;
use crate::text::{Text, clean};
use crate::time::Moment;
use crate::transition::Trigger;
use crate::value::Value;

impl<P> Scheduler<P> {
    /// A carrier reports. What does not come from the current attempt is ignored: its task was declared
    /// lost, and nothing that it says later changes that. Follow with [`dispatch`](Self::dispatch).
    pub fn report(
        &mut self,
        key: TaskKey,
        attempt: u32,
        report: Report,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        let Some(task) = self.tasks.get_mut(key).filter(|t| t.snapshot.attempt == attempt) else {
            return;
        };
        let Some(carried) = task.carried_mut().filter(|c| c.carrier == Carrier::Up) else { return };
        match report {
            Report::Launched => {
                carried.active_at = carried.run_time.at(now.mono);
                self.step(key, Status::Running, Trigger::Launched, None, now.wall, out);
            }
            Report::LaunchFailed(failure) => self.launch_failed(key, failure, now, out),
            Report::Paused { epoch } => self.pause_reached(key, epoch, now, out),
            Report::Activity => {
                carried.active_at = carried.run_time.at(now.mono);
                task.state_mut().last_heartbeat_at = Some(now.wall);
                out.push(Action::Touch(key));
            }
            Report::Progress(progress) => self.progress(key, progress, out),
            Report::Ended(end) => self.attempt_ended(key, end, now, out),
        }
        self.rearm(key);
    }

    fn launch_failed(
        &mut self,
        key: TaskKey,
        failure: Failure,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        match self.take_stop(key) {
            Some(stop) => self.stop_confirmed(key, stop, Some(&failure.message), now, out),
            None => self.failed(key, failure, Trigger::LaunchFailed, true, now, out),
        }
    }

    fn pause_reached(&mut self, key: TaskKey, epoch: u64, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let status = task.snapshot.status();
        let Some(carried) = task.carried_mut() else { return };
        if status != Status::Pausing || carried.pauses != epoch {
            return;
        }
        carried.run_time.hold(now.mono);
        let pause = carried.pause.take();
        self.step(key, Status::Paused, Trigger::PauseReached, None, now.wall, out);
        for ticket in pause.into_iter().flat_map(|pause| pause.tickets) {
            self.reply(key, ticket, Reply::Done, out);
        }
    }

    fn attempt_ended(
        &mut self,
        key: TaskKey,
        end: AttemptEnd,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        if self.status(key) == Some(Status::Starting) {
            // It ended without having said that it runs: it did run.
            match end {
                AttemptEnd::Completed(_) | AttemptEnd::Failed(_) => {
                    self.step(key, Status::Running, Trigger::Launched, None, now.wall, out);
                }
                AttemptEnd::Interrupted { .. }
                | AttemptEnd::Unkillable { .. }
                | AttemptEnd::Vanished { .. } => {}
            }
        }
        match (end, self.take_stop(key)) {
            (AttemptEnd::Completed(value), _) => self.completed(key, value, now, out),
            (AttemptEnd::Failed(failure), stop) => {
                let may_retry = stop.is_none_or(|stop| stop.cause.end().is_none());
                self.failed(key, failure, Trigger::Failed, may_retry, now, out);
            }
            (AttemptEnd::Interrupted { message }, Some(stop)) => {
                self.stop_confirmed(key, stop, message.as_ref(), now, out);
            }
            (AttemptEnd::Interrupted { message }, None) => {
                let message = message.unwrap_or_else(|| "it was interrupted".into());
                let trigger = if self.status(key) == Some(Status::Starting) {
                    Trigger::LaunchFailed
                } else {
                    Trigger::Failed
                };
                let failure = Failure::new(FailureKind::Exception, message);
                self.failed(key, failure, trigger, true, now, out);
            }
            (AttemptEnd::Unkillable { message }, Some(_)) => {
                self.lost(key, Trigger::StopUnconfirmed, &message, now, out);
            }
            (AttemptEnd::Unkillable { message }, None) | (AttemptEnd::Vanished { message }, _) => {
                self.lost(key, Trigger::Vanished, &message, now, out);
            }
        }
    }

    fn completed(&mut self, key: TaskKey, value: Value, now: Moment, out: &mut Vec<Action<P>>) {
        if let Some(task) = self.tasks.get_mut(key) {
            let state = task.state_mut();
            state.failure = None;
            state.value = (value != Value::Null).then(|| Box::new(value));
        }
        self.step(key, Status::Succeeded, Trigger::Completed, None, now.wall, out);
        self.ended(key, out);
    }

    /// An attempt failed: another one follows, or the task has failed.
    pub(super) fn failed(
        &mut self,
        key: TaskKey,
        failure: Failure,
        trigger: Trigger,
        may_retry: bool,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        let chance = self.draw();
        let Some(task) = self.tasks.get_mut(key) else { return };
        let attempt = task.snapshot.attempt;
        let retry = &task.policy.retry;
        let again = may_retry && retry.covers(&failure) && attempt < task.snapshot.max_attempts;
        let due = now.mono.saturating_add(retry.backoff.delay(attempt, chance));
        task.state_mut().failure = Some(Box::new(failure));
        if again {
            self.step(key, Status::RetryWait, trigger, None, now.wall, out);
            let carried = self.leave(key);
            for ticket in carried.and_then(|c| c.pause).into_iter().flat_map(|p| p.tickets) {
                self.reply(key, ticket, Reply::NotConfirmed, out);
            }
            if let Some(task) = self.tasks.get_mut(key) {
                task.phase = Phase::RetryWait { due };
            }
            self.rearm(key);
        } else {
            self.step(key, Status::Failed, trigger, None, now.wall, out);
            self.ended(key, out);
        }
    }

    /// The carrier is gone, as asked.
    pub(super) fn stop_confirmed(
        &mut self,
        key: TaskKey,
        stop: Stop,
        message: Option<&Text>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        let reason = match (stop.reason, message) {
            (Some(reason), Some(message)) => Some(clean(&format!("{reason} ({message})"))),
            (Some(text), None) => Some(text),
            (None, message) => message.cloned(),
        };
        match stop.cause.end() {
            Some(end) => {
                self.step(key, end, Trigger::StopConfirmed, reason, now.wall, out);
                self.ended(key, out);
            }
            None => {
                let kind = match stop.cause {
                    EndCause::TimeoutIdle => FailureKind::TimeoutIdle,
                    EndCause::TimeoutAttempt
                    | EndCause::FailFast
                    | EndCause::Cancel
                    | EndCause::Shutdown
                    | EndCause::Stop => FailureKind::TimeoutAttempt,
                };
                let failure = Failure::new(kind, reason.as_deref().unwrap_or("it took too long"));
                self.failed(key, failure, Trigger::TimeoutConfirmed, true, now, out);
            }
        }
    }

    /// Nobody can say how it ended.
    pub(super) fn lost(
        &mut self,
        key: TaskKey,
        trigger: Trigger,
        message: &str,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        if let Some(task) = self.tasks.get_mut(key) {
            task.state_mut().failure = Some(Box::new(Failure::new(FailureKind::Lost, message)));
        }
        self.step(key, Status::Lost, trigger, Some(clean(message)), now.wall, out);
        self.ended(key, out);
    }

    fn take_stop(&mut self, key: TaskKey) -> Option<Stop> {
        self.tasks.get_mut(key)?.carried_mut()?.stop.take()
    }

    /// Answers a ticket once the current version is settled.
    pub(super) fn reply(
        &mut self,
        key: TaskKey,
        ticket: crate::scheduler::action::Ticket,
        reply: Reply,
        out: &mut Vec<Action<P>>,
    ) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let version = task.snapshot.status_version();
        if task.settled >= version {
            out.push(Action::Reply(ticket, reply));
        } else {
            task.replies.push((version, ticket, reply));
        }
    }
}
