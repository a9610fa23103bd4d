//! What people and the orchestration ask of a task (spec 6).

use std::time::Duration;

use crate::executor::Signal;
use crate::scheduler::Scheduler;
use crate::scheduler::action::{Action, EndCause, Refused, Reply, Request, Ticket};
use crate::scheduler::slab::TaskKey;
use crate::scheduler::task::{Carrier, Pause, Stop};
use crate::status::Status;
use crate::text::Text;
use crate::time::Moment;
use crate::transition::Trigger;

impl<P> Scheduler<P> {
    /// Asks something of a task. `Ok` = accepted; a ticket is answered by an [`Action::Reply`] once the
    /// outcome is known and written. Follow with [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// [`Refused`]: not possible in this state; nothing changed and the ticket is not answered.
    pub fn request(
        &mut self,
        key: TaskKey,
        request: Request,
        reason: Option<Text>,
        ticket: Option<Ticket>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> Result<(), Refused> {
        let status = self.status(key).ok_or(Refused::Unknown)?;
        match request {
            Request::End(cause) => self.end(key, status, cause, reason, ticket, now, out)?,
            Request::Pause { limit } => self.pause(key, status, limit, reason, ticket, now, out)?,
            Request::Resume => self.resume(key, status, reason, ticket, now, out)?,
        }
        self.rearm(key);
        Ok(())
    }

    /// Gives a stop that is under way no more time: what can be killed is killed now.
    pub fn hasten(&mut self, key: TaskKey, now: Moment, out: &mut Vec<Action<P>>) {
        if let Some(stop) =
            self.tasks.get_mut(key).and_then(|t| t.carried_mut()).and_then(|c| c.stop.as_mut())
            && !stop.killed
        {
            stop.by = now.mono;
            self.stop_due(key, now, out);
            self.rearm(key);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one request, taken apart")]
    fn end(
        &mut self,
        key: TaskKey,
        status: Status,
        cause: EndCause,
        reason: Option<Text>,
        ticket: Option<Ticket>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> Result<(), Refused> {
        match status {
            Status::Pending | Status::Blocked | Status::Queued | Status::RetryWait => {
                // A time-out never reaches a task that waits; the start time-out has its own way.
                let to = cause.end().ok_or(Refused::NotNow(status))?;
                self.step(key, to, cause.trigger(), reason, now.wall, out);
                self.answer(key, ticket, out);
                self.ended(key, out);
            }
            Status::Starting | Status::Running | Status::Pausing | Status::Paused => {
                self.begin_stop(key, cause, reason, now, out);
                self.answer(key, ticket, out);
                self.confirm_unlaunched(key, now, out);
            }
            Status::Stopping => {
                self.raise(key, cause, reason);
                self.answer(key, ticket, out);
            }
            Status::Succeeded
            | Status::Failed
            | Status::Stopped
            | Status::Cancelled
            | Status::Skipped
            | Status::Lost => return Err(Refused::Ended(status)),
        }
        Ok(())
    }

    fn answer(&mut self, key: TaskKey, ticket: Option<Ticket>, out: &mut Vec<Action<P>>) {
        if let Some(ticket) = ticket {
            self.reply(key, ticket, Reply::Done, out);
        }
    }

    /// Into `stopping`: tells the carrier, and gives up a pause that is under way.
    pub(super) fn begin_stop(
        &mut self,
        key: TaskKey,
        cause: EndCause,
        reason: Option<Text>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        if !self.step(key, Status::Stopping, cause.trigger(), reason.clone(), now.wall, out) {
            return;
        }
        let Some(task) = self.tasks.get_mut(key) else { return };
        let grace = task.policy.grace;
        let Some(carried) = task.carried_mut() else { return };
        let by = now.mono.saturating_add(grace);
        let pause = carried.pause.take();
        let is_up = carried.carrier == Carrier::Up;
        let told = reason.clone().unwrap_or_else(|| cause.trigger().as_str().into());
        carried.stop = Some(Stop { cause, reason, by, killed: false });
        if is_up {
            out.push(Action::Signal(key, Signal::Stop { reason: told, grace }));
        }
        for ticket in pause.into_iter().flat_map(|pause| pause.tickets) {
            self.reply(key, ticket, Reply::NotConfirmed, out);
        }
    }

    /// A carrier that was never started is gone already.
    pub(super) fn confirm_unlaunched(
        &mut self,
        key: TaskKey,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        let stop =
            self.tasks.get_mut(key).and_then(|task| task.carried_mut()).and_then(|carried| {
                match carried.carrier {
                    Carrier::AwaitsWrite(_) => carried.stop.take(),
                    Carrier::Up => None,
                }
            });
        if let Some(stop) = stop {
            self.stop_confirmed(key, stop, None, now, out);
        }
    }

    fn raise(&mut self, key: TaskKey, cause: EndCause, reason: Option<Text>) {
        if let Some(stop) =
            self.tasks.get_mut(key).and_then(|t| t.carried_mut()).and_then(|c| c.stop.as_mut())
            && cause > stop.cause
        {
            stop.cause = cause;
            stop.reason = reason;
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one request, taken apart")]
    fn pause(
        &mut self,
        key: TaskKey,
        status: Status,
        limit: Duration,
        reason: Option<Text>,
        ticket: Option<Ticket>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> Result<(), Refused> {
        match status {
            Status::Running => {
                self.step(key, Status::Pausing, Trigger::UserPause, reason, now.wall, out);
                let Some(carried) = self.tasks.get_mut(key).and_then(|task| task.carried_mut())
                else {
                    return Err(Refused::NotNow(status));
                };
                carried.pauses += 1;
                let by = now.mono.saturating_add(limit);
                carried.pause = Some(Pause { by, tickets: ticket.into_iter().collect() });
                out.push(Action::Signal(key, Signal::Pause { epoch: carried.pauses }));
            }
            Status::Pausing => {
                let carried = self.tasks.get_mut(key).and_then(|task| task.carried_mut());
                if let Some(pause) = carried.and_then(|carried| carried.pause.as_mut()) {
                    pause.tickets.extend(ticket);
                }
            }
            Status::Paused => self.answer(key, ticket, out),
            Status::Pending
            | Status::Blocked
            | Status::Queued
            | Status::RetryWait
            | Status::Starting
            | Status::Stopping => return Err(Refused::NotNow(status)),
            Status::Succeeded
            | Status::Failed
            | Status::Stopped
            | Status::Cancelled
            | Status::Skipped
            | Status::Lost => return Err(Refused::Ended(status)),
        }
        Ok(())
    }

    fn resume(
        &mut self,
        key: TaskKey,
        status: Status,
        reason: Option<Text>,
        ticket: Option<Ticket>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> Result<(), Refused> {
        match status {
            Status::Pausing | Status::Paused => {
                self.unpause(key, Trigger::UserResume, reason, now, out);
                self.answer(key, ticket, out);
            }
            Status::Running => self.answer(key, ticket, out),
            Status::Pending
            | Status::Blocked
            | Status::Queued
            | Status::RetryWait
            | Status::Starting
            | Status::Stopping => return Err(Refused::NotNow(status)),
            Status::Succeeded
            | Status::Failed
            | Status::Stopped
            | Status::Cancelled
            | Status::Skipped
            | Status::Lost => return Err(Refused::Ended(status)),
        }
        Ok(())
    }

    /// Back to `running`, from `pausing` or `paused`.
    pub(super) fn unpause(
        &mut self,
        key: TaskKey,
        trigger: Trigger,
        reason: Option<Text>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) {
        if !self.step(key, Status::Running, trigger, reason, now.wall, out) {
            return;
        }
        let Some(carried) = self.tasks.get_mut(key).and_then(|task| task.carried_mut()) else {
            return;
        };
        carried.run_time.go_on(now.mono);
        let pause = carried.pause.take();
        out.push(Action::Signal(key, Signal::Resume));
        for ticket in pause.into_iter().flat_map(|pause| pause.tickets) {
            self.reply(key, ticket, Reply::NotConfirmed, out);
        }
    }
}
