//! Controlling one task by its id, whoever holds it (spec 6 and 11).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::control::{Answer, ControlClient, ControlRefusal, Sent};
use crate::controller::Controller;
use crate::controller::guarded::{Asker, Core, Slot};
use crate::controller::node::DEFAULT_PAUSE_LIMIT;
use crate::id::{CommandId, TaskId};
use crate::scheduler::{EndCause, Refused, Reply, Request};
use crate::store::{CommandKind, ReceiptKind, StoreError};
use crate::text::clean;

/// Time that a holder gets to notice a command, on top of what the command itself may take.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Why a task could not be controlled.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// Not possible; nothing changed.
    Refused(ControlRefusal),
    /// The store cannot be read or written.
    Store(StoreError),
    /// The holder did not answer.
    NoAnswer,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::NoAnswer => f.write_str("the task's holder did not answer"),
        }
    }
}

impl std::error::Error for ControlError {}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refused> for ControlError {
    fn from(refused: Refused) -> Self {
        Self::Refused(match refused {
            Refused::Unknown => ControlRefusal::NotFound,
            Refused::Ended(status) => ControlRefusal::Ended(status),
            Refused::NotNow(status) => ControlRefusal::NotNow(status),
        })
    }
}

impl Controller {
    /// Asks a task to stop. `Ok` = the request was accepted, here or by the task's holder.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn stop(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        self.end(id, EndCause::Stop, CommandKind::Stop, reason)
    }

    /// Withdraws a task: it ends as `cancelled`.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn cancel(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        self.end(id, EndCause::Cancel, CommandKind::Cancel, reason)
    }

    fn end(
        &self,
        id: &TaskId,
        cause: EndCause,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<(), ControlError> {
        let here = self.request(id, Request::End(cause), reason, None)?;
        if here.is_none() {
            self.send(id, kind, reason)?;
        }
        Ok(())
    }

    /// Asks a task to pause: `true` = it is `paused`; `false` = it did not get there within the limit
    /// (10 s unless given; a task held elsewhere always gets 10 s) and is `running` again.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn pause(
        &self,
        id: &TaskId,
        limit: Option<Duration>,
        reason: Option<&str>,
    ) -> Result<bool, ControlError> {
        let limit = limit.unwrap_or(DEFAULT_PAUSE_LIMIT);
        let slot = Arc::new(Slot::default());
        let asked = self.request(id, Request::Pause { limit }, reason, Some(Arc::clone(&slot)))?;
        if asked.is_some() {
            return match slot.wait() {
                Reply::Done => Ok(true),
                Reply::NotConfirmed => Ok(false),
                Reply::Ended(status) => Err(ControlError::Refused(ControlRefusal::Ended(status))),
            };
        }
        let Some(command) = self.send(id, CommandKind::Pause, reason)? else { return Ok(false) };
        let patience = DEFAULT_PAUSE_LIMIT + CLAIM_PATIENCE;
        match self.client().receipt(id, &command, patience)? {
            Answer::Receipt(receipt) => Ok(receipt.kind == ReceiptKind::Applied),
            Answer::HolderGone | Answer::TimedOut => Err(ControlError::NoAnswer),
        }
    }

    /// Lets a paused task go on.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn resume(&self, id: &TaskId, reason: Option<&str>) -> Result<(), ControlError> {
        if self.request(id, Request::Resume, reason, None)?.is_none() {
            self.send(id, CommandKind::Resume, reason)?;
        }
        Ok(())
    }

    /// Asks something of a task that is held here; `None` when it is not.
    fn request(
        &self,
        id: &TaskId,
        request: Request,
        reason: Option<&str>,
        slot: Option<Arc<Slot>>,
    ) -> Result<Option<()>, ControlError> {
        self.engine.with(|core, now| {
            let Some(key) = core.scheduler.key(id) else { return Ok(None) };
            let ticket = slot.map(|slot| core.ticket(Asker::Thread(slot)));
            let Core { scheduler, out, .. } = core;
            match scheduler.request(key, request, reason.map(clean), ticket, now, out) {
                Ok(()) => Ok(Some(())),
                Err(refused) => {
                    if let Some(ticket) = ticket {
                        core.void(ticket);
                    }
                    Err(refused.into())
                }
            }
        })
    }

    fn send(
        &self,
        id: &TaskId,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<Option<CommandId>, ControlError> {
        match self.client().send(id, kind, reason)? {
            Sent::Command(command) => Ok(Some(command)),
            Sent::Done(_) => Ok(None),
            Sent::Refused(refusal) => Err(ControlError::Refused(refusal)),
        }
    }

    pub(super) fn client(&self) -> ControlClient {
        ControlClient::new(Arc::clone(&self.engine.store), self.engine.node.owner.clone())
    }
}
