//! Asking something of a task that another process holds (spec 11): a command with a receipt, or, where
//! nobody holds it and nothing runs, the deed itself by compare-and-set.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::id::{CommandId, TaskId};
use crate::machine;
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::store::{
    CommandKind, Entry, EntryError, NewCommand, Now, Receipt, ReceiptKind, StoreError, TaskFilter,
    TaskQuery, TaskStore,
};
use crate::text::{Text, clean};
use crate::time::Timestamp;
use crate::transition::Trigger;

/// Pause between two looks at the store, while waiting for a receipt.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often a direct deed is tried when somebody else writes the same task in between.
const TRIES: usize = 8;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Handed to the task's live holder; a receipt will follow.
    Command(CommandId),
    /// Carried out on the spot: the task had no live holder and nothing of it was running.
    Done(Status),
    /// Not possible; nothing changed.
    Refused(ControlRefusal),
}

/// Why a request is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRefusal {
    /// There is no such task.
    NotFound,
    /// It has ended.
    Ended(Status),
    /// Nobody lives who could do it, and what became of its carrier is unknown.
    NoLiveHolder(Status),
    /// Not in this state.
    NotNow(Status),
    /// Others kept writing it at the same time.
    Busy,
}

impl fmt::Display for ControlRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such task"),
            Self::Ended(status) => write!(f, "already ended as {status}"),
            Self::NoLiveHolder(status) => write!(
                f,
                "it is {status} and nobody holds it any more; reconcile tells what became of it"
            ),
            Self::NotNow(status) => write!(f, "not possible while it is {status}"),
            Self::Busy => f.write_str("others keep writing this task; try again"),
        }
    }
}

impl std::error::Error for ControlRefusal {}

/// What a wait for a receipt brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The holder says what happened.
    Receipt(Receipt),
    /// The holder's lease ran out before it answered.
    HolderGone,
    /// No answer in time; the command stands.
    TimedOut,
}

/// Controls tasks from outside, through a store.
#[derive(Clone)]
pub struct ControlClient {
    store: Arc<dyn TaskStore>,
    issuer: Text,
}

impl ControlClient {
    /// For whoever calls himself `issuer`.
    #[must_use]
    pub fn new(store: Arc<dyn TaskStore>, issuer: Text) -> Self {
        Self { store, issuer }
    }

    /// Asks for something.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read or written.
    pub fn send(
        &self,
        id: &TaskId,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<Sent, StoreError> {
        for _ in 0..TRIES {
            let Some(task) = self.store.get(id)? else {
                return Ok(Sent::Refused(ControlRefusal::NotFound));
            };
            if task.status().is_terminal() {
                return Ok(Sent::Refused(ControlRefusal::Ended(task.status())));
            }
            if self.has_live_holder(&task)? {
                if !is_possible(kind, task.status()) {
                    return Ok(Sent::Refused(ControlRefusal::NotNow(task.status())));
                }
                return self.command(&task, kind, reason).map(Sent::Command);
            }
            if self.has_moved_on(&task)? {
                continue;
            }
            let Some((to, trigger)) = direct(kind).filter(|_| task.status().is_adoptable()) else {
                return Ok(Sent::Refused(ControlRefusal::NoLiveHolder(task.status())));
            };
            if self.carry_out(task, to, trigger, reason)? {
                return Ok(Sent::Done(to));
            }
        }
        Ok(Sent::Refused(ControlRefusal::Busy))
    }

    /// Waits for the receipt of a command.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn receipt(
        &self,
        id: &TaskId,
        command: &CommandId,
        timeout: Duration,
    ) -> Result<Answer, StoreError> {
        let until = Instant::now().checked_add(timeout);
        loop {
            if let Some(receipt) = self.find_receipt(id, command)? {
                return Ok(Answer::Receipt(receipt));
            }
            let task = self.store.get(id)?;
            let lives = match &task {
                Some(task) => self.has_live_holder(task)? || self.has_moved_on(task)?,
                None => false,
            };
            if !lives {
                // A holder writes its receipts before it gives up its lease: one last look.
                let receipt = self.find_receipt(id, command)?;
                return Ok(receipt.map_or(Answer::HolderGone, Answer::Receipt));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Answer::TimedOut);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn find_receipt(
        &self,
        id: &TaskId,
        command: &CommandId,
    ) -> Result<Option<Receipt>, StoreError> {
        let commands = self.store.commands(id)?;
        let ours = commands.into_iter().find(|c| c.request.id == *command);
        Ok(ours.and_then(|command| command.receipt))
    }

    /// Is this unfinished task left alone: in this very state, and without a live holder?
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn is_abandoned(&self, task: &TaskSnapshot) -> Result<bool, StoreError> {
        let lives = task.status().is_terminal() || self.has_live_holder(task)?;
        Ok(!lives && !self.has_moved_on(task)?)
    }

    /// Has the task changed since it was read? Then what was found about its holder may be about a holder
    /// that has done its work and gone.
    fn has_moved_on(&self, task: &TaskSnapshot) -> Result<bool, StoreError> {
        let now = self.store.get(&task.id)?;
        Ok(now.is_some_and(|now| now.status_version() != task.status_version()))
    }

    /// Does the task's holder live, by the store's clock? `true` is certain; `false` may also mean that the
    /// task has changed since it was read.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn has_live_holder(&self, task: &TaskSnapshot) -> Result<bool, StoreError> {
        let Some(supervisor) = task.supervisor.clone() else { return Ok(false) };
        // Asking for this holder's tasks under a live lease leaves the judgement to the store's clock.
        let filter = TaskFilter {
            statuses: Some([task.status()].into_iter().collect()),
            supervisor: Some(supervisor),
            lease_expired: Some((false, Now::Store)),
            ..TaskFilter::default()
        };
        let page = self.store.query(&TaskQuery { filter, after: None, limit: 1 })?;
        Ok(!page.tasks.is_empty())
    }

    fn command(
        &self,
        task: &TaskSnapshot,
        kind: CommandKind,
        reason: Option<&str>,
    ) -> Result<CommandId, StoreError> {
        let Some(holder) = task.supervisor.clone() else {
            let message = "the task has no holder to send a command to";
            return Err(StoreError::new(crate::store::StoreErrorKind::Invalid, "command", message));
        };
        let command = NewCommand {
            id: CommandId::generate(),
            task_id: task.id.clone(),
            holder,
            kind,
            reason: reason.map(clean),
            issuer: self.issuer.clone(),
            issued_at: std::time::SystemTime::now().into(),
        };
        self.store.submit_command(&command)?;
        Ok(command.id)
    }

    /// Writes the end of a task that nobody holds; `false` when somebody else wrote or holds it by now.
    fn carry_out(
        &self,
        mut task: TaskSnapshot,
        to: Status,
        trigger: Trigger,
        reason: Option<&str>,
    ) -> Result<bool, StoreError> {
        let expect_version = task.status_version();
        let at = Timestamp::from(std::time::SystemTime::now());
        let Ok(transition) = machine::apply(&mut task, to, trigger, at, reason.map(clean)) else {
            return Ok(false);
        };
        let id = task.id.clone();
        let entry = Entry::Save {
            snapshot: task.into(),
            expect_version,
            transitions: vec![transition],
            if_expired: Some(Now::Store),
        };
        match self.store.write(&[entry])?.pop() {
            Some(Ok(())) => {
                close_commands(&*self.store, &id, to)?;
                Ok(true)
            }
            Some(Err(
                EntryError::Conflict { .. }
                | EntryError::LeaseHeld { .. }
                | EntryError::NotFound
                | EntryError::Exists
                | EntryError::NotNewer,
            ))
            | None => Ok(false),
        }
    }
}

/// Does it make sense in this state of an unfinished task? A body that runs may still be `starting` in the
/// store, but no less: so that much is certain without the holder, which has the last word on the rest.
const fn is_possible(kind: CommandKind, status: Status) -> bool {
    match kind {
        CommandKind::Pause | CommandKind::Resume => {
            matches!(status, Status::Starting | Status::Running | Status::Pausing | Status::Paused)
        }
        CommandKind::Stop | CommandKind::Cancel | CommandKind::Explain => true,
    }
}

/// What can be done to a task that nobody holds.
const fn direct(kind: CommandKind) -> Option<(Status, Trigger)> {
    match kind {
        CommandKind::Stop => Some((Status::Stopped, Trigger::UserStop)),
        CommandKind::Cancel => Some((Status::Cancelled, Trigger::UserCancel)),
        CommandKind::Pause | CommandKind::Resume | CommandKind::Explain => None,
    }
}

/// Completes the open commands of a task that has ended.
pub(crate) fn close_commands(
    store: &dyn TaskStore,
    id: &TaskId,
    ended: Status,
) -> Result<(), StoreError> {
    let open = store.commands(id)?.into_iter().filter(|command| command.receipt.is_none());
    for command in open {
        let receipt = Receipt::new(ReceiptKind::AlreadyEnded, format!("already ended as {ended}"));
        store.complete_command(&command.request.id, &receipt, Now::Store)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::DEFAULT_NUM_BUCKETS;
    use crate::id::IncarnationId;
    use crate::memory_store::InMemoryStore;
    use crate::store::Node;

    const AT: Timestamp = Timestamp::from_micros(0);
    const TTL: Duration = Duration::from_secs(3600);

    /// A store with one running task, and a client.
    fn running() -> (Arc<InMemoryStore>, ControlClient, TaskSnapshot) {
        let store = Arc::new(InMemoryStore::new());
        let id = TaskId::new("t").unwrap();
        let mut task = TaskSnapshot::pending(id, "sync", "a".into(), AT);
        task.supervisor = Some(IncarnationId::new("i").unwrap());
        store
            .write(&[Entry::Create { snapshot: task.clone().into(), transitions: Vec::new() }])
            .unwrap();
        for (to, trigger) in [
            (Status::Queued, Trigger::DependenciesResolved),
            (Status::Starting, Trigger::Dispatch),
            (Status::Running, Trigger::Launched),
        ] {
            step(&*store, &mut task, to, trigger);
        }
        let client = ControlClient::new(Arc::clone(&store) as Arc<dyn TaskStore>, "me".into());
        (store, client, task)
    }

    fn step(store: &dyn TaskStore, task: &mut TaskSnapshot, to: Status, trigger: Trigger) {
        let expect_version = task.status_version();
        let transition = machine::apply(task, to, trigger, AT, None).unwrap();
        let (snapshot, transitions) = (task.clone(), vec![transition]);
        let save = Entry::Save {
            snapshot: snapshot.into(),
            expect_version,
            transitions,
            if_expired: None,
        };
        assert_eq!(store.write(&[save]).unwrap(), [Ok(())]);
    }

    fn beat(store: &dyn TaskStore) {
        let node = Node {
            owner: "a".into(),
            incarnation: IncarnationId::new("i").unwrap(),
            host: "box".into(),
            pid: 1,
            num_buckets: DEFAULT_NUM_BUCKETS,
            owned_buckets: None,
            artifacts: None,
            started_at: AT,
        };
        store.beat(&node, TTL, Now::Store).unwrap();
    }

    #[test]
    fn a_task_that_has_moved_on_is_not_abandoned() {
        let (store, client, mut task) = running();
        assert!(client.is_abandoned(&task).unwrap());
        let seen = task.clone();
        step(&*store, &mut task, Status::Succeeded, Trigger::Completed);
        assert!(!client.is_abandoned(&seen).unwrap(), "its holder ended it and went");
        assert!(!client.is_abandoned(&task).unwrap());
        let (store, client, task) = running();
        beat(&*store);
        assert!(!client.is_abandoned(&task).unwrap());
    }

    #[test]
    fn the_receipt_of_a_holder_that_has_gone_is_found() {
        let (store, client, mut task) = running();
        beat(&*store);
        let Sent::Command(command) = client.send(&task.id, CommandKind::Stop, None).unwrap() else {
            panic!("not sent");
        };
        step(&*store, &mut task, Status::Stopping, Trigger::UserStop);
        step(&*store, &mut task, Status::Stopped, Trigger::StopConfirmed);
        store.retire(&IncarnationId::new("i").unwrap(), Now::Store).unwrap();
        let answer = || client.receipt(&task.id, &command, TTL).unwrap();
        assert_eq!(answer(), Answer::HolderGone);
        let receipt = Receipt::new(ReceiptKind::Applied, "applied");
        store.complete_command(&command, &receipt, Now::Store).unwrap();
        assert_eq!(answer(), Answer::Receipt(receipt));
    }

    #[test]
    fn a_pause_of_what_does_not_run_is_refused_at_once() {
        let (store, client, mut task) = running();
        beat(&*store);
        assert!(matches!(client.send(&task.id, CommandKind::Pause, None), Ok(Sent::Command(_))));
        step(&*store, &mut task, Status::Stopping, Trigger::UserStop);
        for kind in [CommandKind::Pause, CommandKind::Resume] {
            let refused = Sent::Refused(ControlRefusal::NotNow(Status::Stopping));
            assert_eq!(client.send(&task.id, kind, None).unwrap(), refused);
        }
        assert!(matches!(client.send(&task.id, CommandKind::Stop, None), Ok(Sent::Command(_))));
    }
}
