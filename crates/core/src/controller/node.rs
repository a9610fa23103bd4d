//! This controller as a node (spec 11, 12): its lease, its commands, their receipts.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::controller::engine::Engine;
use crate::controller::guarded::{Asker, Core};
use crate::executor::{Launch, Report};
use crate::failure::{Failure, FailureKind};
use crate::id::{CommandId, TaskId};
use crate::scheduler::{EndCause, Refused, Reply, Request, TaskKey};
use crate::status::StatusSet;
use crate::store::{
    Command, CommandKind, Now, Receipt, ReceiptKind, StoreError, TaskFilter, TaskQuery,
};

/// How long a claimed command is ours.
const CLAIM_LEASE: Duration = Duration::from_secs(30);
/// Commands that are claimed at once.
const CLAIM_LIMIT: usize = 64;
/// How many applied commands are remembered, so that none is applied twice.
const REMEMBERED: usize = 10_000;
/// How long a pause may take when nobody says otherwise (spec 6).
pub(super) const DEFAULT_PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// Commands that this holder has applied.
#[derive(Default)]
struct Applied {
    ids: HashSet<CommandId>,
    order: VecDeque<CommandId>,
}

impl Applied {
    /// `false` when it was applied before.
    fn remember(&mut self, id: &CommandId) -> bool {
        if !self.ids.insert(id.clone()) {
            return false;
        }
        self.order.push_back(id.clone());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

/// The lease of this incarnation, as far as its own clock knows.
#[derive(Default)]
pub(super) struct Lease(Mutex<LeaseState>);

#[derive(Default)]
struct LeaseState {
    is_node: bool,
    renewed: Option<Duration>,
    /// When the latest attempt at it came to its end, whatever came of it.
    tried: Option<Duration>,
}

impl Lease {
    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is this controller a node by now?
    pub(super) fn is_node(&self) -> bool {
        self.state().is_node
    }

    /// Makes it one; `false` when it was.
    fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state().is_node, true)
    }

    fn last_renewal(&self) -> Option<Duration> {
        self.state().renewed
    }

    fn renewed(&self, at: Duration) {
        self.state().renewed = Some(at);
    }

    fn last_try(&self) -> Option<Duration> {
        self.state().tried
    }

    fn tried(&self, at: Duration) {
        self.state().tried = Some(at);
    }
}

impl Engine {
    /// Becomes a node, before its first submission: row, lease, and the thread that keeps both.
    pub(super) fn become_node(self: &Arc<Self>) {
        if !self.lease.begin() {
            return;
        }
        self.renew();
        let engine = Arc::downgrade(self);
        let ring = move || {
            if let Some(engine) = engine.upgrade() {
                engine.inbox.ring();
            }
        };
        self.store.subscribe(self.incarnation(), Arc::new(ring));
        let engine = Arc::clone(self);
        let spawned = thread::Builder::new().name("task-node".into()).spawn(move || engine.serve());
        if let Err(error) = spawned {
            self.note_fault(None, format!("the node thread could not be started: {error}"));
        }
    }

    /// The node thread's life: beats, claims commands, writes receipts.
    pub(super) fn serve(self: &Arc<Self>) {
        let beat_every = self.options.lease_ttl / 8;
        let mut applied = Applied::default();
        let mut next_beat = self.clock.monotonic().saturating_add(beat_every);
        let mut next_poll = Duration::ZERO;
        loop {
            let now = self.clock.monotonic();
            let delivery = self.inbox.wait(next_beat.min(next_poll).saturating_sub(now));
            let now = self.clock.monotonic();
            if next_beat <= now {
                self.renew();
                next_beat = now.saturating_add(beat_every);
            }
            self.claim(&mut applied);
            next_poll = self.clock.monotonic().saturating_add(self.options.poll_interval);
            for (id, reply) in delivery.answers {
                self.complete(&id, &receipt(reply));
            }
            if delivery.over {
                return;
            }
        }
    }

    /// Renews the lease when it may have run out, before anything else is written.
    pub(super) fn renew_if_overdue(self: &Arc<Self>) {
        if self.is_overdue() {
            self.renew();
        }
    }

    /// May the lease have run out, by our own clock?
    fn is_overdue(&self) -> bool {
        self.is_long_ago(self.lease.last_renewal())
    }

    fn is_long_ago(&self, at: Option<Duration>) -> bool {
        let now = self.clock.monotonic();
        at.is_some_and(|at| now.saturating_sub(at) >= self.options.lease_ttl)
    }

    /// Of what is to be launched, that of which nobody else has taken the task, or declared it lost, while
    /// this process stood still (spec 10). Where that was tried in vain a moment ago, work goes on: the store
    /// cannot be reached.
    pub(super) fn still_ours(
        self: &Arc<Self>,
        launches: Vec<(TaskKey, Launch)>,
    ) -> Vec<(TaskKey, Launch)> {
        if !self.is_overdue() || !self.is_long_ago(self.lease.last_try()) {
            return launches;
        }
        self.renew();
        let core = self.lock();
        let is_ours = |(key, _): &(TaskKey, Launch)| !core.scheduler.is_disowned(*key);
        let (ours, taken): (Vec<_>, Vec<_>) = launches.into_iter().partition(is_ours);
        drop(core);
        for (_, launch) in taken {
            let failure = Failure::new(FailureKind::LaunchFailed, "the task was taken over");
            launch.sink.report(Report::LaunchFailed(failure));
        }
        ours
    }

    /// Writes the node row and renews the lease.
    pub(super) fn renew(self: &Arc<Self>) {
        let started = self.clock.monotonic();
        match self.store.beat(&self.node, self.options.lease_ttl, Now::Store) {
            Ok(beat) => {
                if beat.had_lapsed
                    && let Err(error) = self.look_for_taken_tasks()
                {
                    self.note_node_fault(&error);
                }
                // Not before: whoever sees a lease that holds may rely on that look.
                self.lease.renewed(started);
            }
            Err(error) => self.note_node_fault(&error),
        }
        self.lease.tried(self.clock.monotonic());
    }

    /// After a lapse: tasks that were taken meanwhile stay taken, and their work here is stopped.
    fn look_for_taken_tasks(self: &Arc<Self>) -> Result<(), StoreError> {
        let ours: Vec<(TaskKey, TaskId)> = {
            let core = self.lock();
            let stored = core.scheduler.keys().filter(|key| core.journal.may_be_stored(*key));
            stored.filter_map(|key| Some((key, core.scheduler.snapshot(key)?.id.clone()))).collect()
        };
        let filter = TaskFilter {
            statuses: Some(StatusSet::unfinished()),
            supervisor: Some(self.incarnation().clone()),
            ..TaskFilter::default()
        };
        let mut query = TaskQuery { filter, after: None, limit: 1000 };
        let mut still_ours = HashSet::new();
        loop {
            let page = self.store.query(&query)?;
            still_ours.extend(page.tasks.into_iter().map(|task| task.id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        for (key, id) in ours.into_iter().filter(|(_, id)| !still_ours.contains(id)) {
            // It may also have ended meanwhile, by our own hand, or not be made yet: the store's word decides.
            let is_taken = match self.store.get(&id)? {
                Some(task) => {
                    let known = self.lock().scheduler.snapshot(key).map(|t| t.status_version());
                    known.is_some_and(|known| task.status_version() > known)
                        || task.supervisor.as_ref() != Some(self.incarnation())
                }
                None => self.lock().journal.is_stored(key),
            };
            if is_taken {
                self.with(|core, now| {
                    core.desynced.push(id);
                    core.journal.forget(key);
                    let reason = "the task was taken over while this node's lease had expired";
                    core.scheduler.disown(key, reason.into(), now, &mut core.out);
                });
            }
        }
        Ok(())
    }

    fn claim(self: &Arc<Self>, applied: &mut Applied) {
        loop {
            let claimed =
                self.store.claim_commands(self.incarnation(), CLAIM_LIMIT, CLAIM_LEASE, Now::Store);
            let claimed = match claimed {
                Ok(claimed) => claimed,
                Err(error) => return self.note_node_fault(&error),
            };
            let is_last = claimed.len() < CLAIM_LIMIT;
            for command in claimed {
                if applied.remember(&command.request.id) {
                    self.apply(&command);
                }
            }
            if is_last {
                return;
            }
        }
    }

    fn apply(self: &Arc<Self>, command: &Command) {
        let request = &command.request;
        let done = self.with(|core, now| {
            let Some(key) = core.scheduler.key(&request.task_id) else { return Applying::NotHere };
            let (reason, id) = (request.reason.clone(), request.id.clone());
            let wanted = match request.kind {
                CommandKind::Stop => Request::End(EndCause::Stop),
                CommandKind::Cancel => Request::End(EndCause::Cancel),
                CommandKind::Pause => Request::Pause { limit: DEFAULT_PAUSE_LIMIT },
                CommandKind::Resume => Request::Resume,
                CommandKind::Explain => {
                    let explanation = core.explain(key, now.mono);
                    let words = explanation.map_or_else(String::new, |e| e.to_string());
                    return Applying::Done(Receipt::new(ReceiptKind::Applied, words));
                }
            };
            let ticket = core.ticket(Asker::Command(id));
            let Core { scheduler, out, .. } = core;
            match scheduler.request(key, wanted, reason, Some(ticket), now, out) {
                Ok(()) => Applying::Asked,
                Err(refused) => {
                    core.void(ticket);
                    Applying::Done(refusal(refused))
                }
            }
        });
        match done {
            Applying::Asked => {}
            Applying::Done(receipt) => self.complete(&request.id, &receipt),
            Applying::NotHere => self.answer_for_absent(command),
        }
    }

    /// A command for a task that is not in memory: ended, taken over, or not ours at all.
    fn answer_for_absent(&self, command: &Command) {
        let request = &command.request;
        let receipt = match self.store.get(&request.task_id) {
            Ok(Some(task)) if task.status().is_terminal() => {
                let words = format!("already ended as {}", task.status());
                Some(Receipt::new(ReceiptKind::AlreadyEnded, words))
            }
            Ok(Some(task)) if task.supervisor.as_ref() != Some(self.incarnation()) => {
                Some(Receipt::new(ReceiptKind::Superseded, "superseded by adoption"))
            }
            Ok(Some(_) | None) => None,
            Err(error) => return self.note_node_fault(&error),
        };
        match receipt {
            Some(receipt) => self.complete(&request.id, &receipt),
            None => {
                if let Err(error) = self.store.release_command(&request.id) {
                    self.note_node_fault(&error);
                }
            }
        }
    }

    fn complete(&self, id: &CommandId, receipt: &Receipt) {
        if let Err(error) = self.store.complete_command(id, receipt, Now::Store) {
            self.note_node_fault(&error);
        }
    }

    fn note_node_fault(&self, error: &StoreError) {
        self.note_fault(None, error.to_string());
    }
}

enum Applying {
    Asked,
    Done(Receipt),
    NotHere,
}

fn receipt(reply: Reply) -> Receipt {
    match reply {
        Reply::Done => Receipt::new(ReceiptKind::Applied, "applied"),
        Reply::NotConfirmed => {
            Receipt::new(ReceiptKind::NotConfirmed, "not confirmed; the task goes on")
        }
        Reply::Ended(status) => {
            Receipt::new(ReceiptKind::AlreadyEnded, format!("already ended as {status}"))
        }
    }
}

fn refusal(refused: Refused) -> Receipt {
    match refused {
        Refused::Ended(status) => {
            Receipt::new(ReceiptKind::AlreadyEnded, format!("already ended as {status}"))
        }
        Refused::NotNow(status) => {
            Receipt::new(ReceiptKind::Refused, format!("not possible while it is {status}"))
        }
        Refused::Unknown => Receipt::new(ReceiptKind::Refused, "the task is not here"),
    }
}
