//! This controller as a node (spec 11, 12): its lease, its commands, their receipts.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::controller::engine::{Engine, Sink};
use crate::controller::guarded::{Asker, Core};
use crate::controller::lease::{BEATS, Standing};
use crate::id::{CommandId, TaskId};
use crate::scheduler::{EndCause, Refused, Reply, Request, TaskKey};
use crate::snapshot::TaskSnapshot;
use crate::status::StatusSet;
use crate::store::{
    Command, CommandKind, Now, Receipt, ReceiptKind, StoreError, TaskFilter, TaskQuery,
};
use crate::text::Text;
use crate::time::Moment;

/// How long a claimed command is ours.
const CLAIM_LEASE: Duration = Duration::from_secs(30);
/// Commands that are claimed at once.
const CLAIM_LIMIT: usize = 64;
/// How many applied commands are remembered, so that none is applied twice.
const REMEMBERED: usize = 10_000;
/// The patience for a store is used up in so many slices: one in which this process stands still, for however
/// long, is only one.
const SLICES: u32 = 50;
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
        let beat_every = self.options.lease_ttl / BEATS;
        let mut applied = Applied::default();
        let mut next_beat = self.clock.monotonic().saturating_add(beat_every);
        let mut next_poll = Duration::ZERO;
        loop {
            let now = self.clock.monotonic();
            let delivery = self.inbox.wait(next_beat.min(next_poll).saturating_sub(now));
            let now = self.clock.monotonic();
            if !delivery.over {
                if self.lease.take_asked() || next_beat <= now {
                    self.renew();
                    next_beat = now.saturating_add(beat_every);
                }
                self.claim(&mut applied);
                next_poll = self.clock.monotonic().saturating_add(self.options.poll_interval);
            }
            for (id, reply) in delivery.answers {
                self.complete(&id, &receipt(reply));
            }
            if delivery.over {
                return;
            }
        }
    }

    fn standing(&self) -> Standing {
        self.lease.standing(self.clock.now(), self.options.lease_ttl)
    }

    /// Renews the lease when it may have run out, before anything else is written.
    pub(super) fn renew_if_overdue(self: &Arc<Self>) {
        if self.standing() != Standing::Good {
            let turn = self.lease.turn();
            // Another may have done it meanwhile.
            if self.standing() != Standing::Good {
                self.renew_in_turn();
            }
            drop(turn);
        }
    }

    /// Ends the node row and the lease, after the last write: no renewal follows.
    pub(super) fn retire(&self) -> Result<(), StoreError> {
        let turn = self.lease.turn();
        self.lease.retire();
        let retired = self.store.retire(self.incarnation(), Now::Store);
        drop(turn);
        retired
    }

    /// Writes the node row and renews the lease.
    pub(super) fn renew(self: &Arc<Self>) {
        let turn = self.lease.turn();
        self.renew_in_turn();
        drop(turn);
    }

    fn renew_in_turn(self: &Arc<Self>) {
        if self.lease.is_retired() {
            return;
        }
        let started = self.clock.now();
        let renewed = self.store.beat(&self.node, self.options.lease_ttl, Now::Store);
        let complete = renewed.and_then(|beat| {
            if beat.had_lapsed {
                self.lease.lapsed();
            }
            // By our own clocks, too: the answer that told of a lapse may have been lost.
            match self.lease.standing(started, self.options.lease_ttl) {
                Standing::Good => Ok(()),
                Standing::OutOfReach | Standing::Doubtful => self.look_for_taken_tasks(),
            }
        });
        match complete {
            Ok(()) => {
                self.lease.renewed(started);
                self.retry_writes();
            }
            Err(error) => {
                self.note_node_fault(&error);
                // As of its beginning: this process may have stood still since, and the store be back.
                self.lease.failed(started);
            }
        }
    }

    /// May this attempt begin? Asked by whoever carries it, directly before its first step: nothing begins
    /// for a task that was taken over, or declared lost, while this process stood still (spec 10). The store
    /// is asked by the node thread, and waited for no longer than for a write.
    pub(super) fn may_begin(&self, sink: &Sink) -> bool {
        for _ in 0..SLICES {
            match self.lease.for_start(self.clock.now(), self.options.lease_ttl) {
                None => return false,
                Some((Standing::Good | Standing::OutOfReach, _)) => {
                    return self.is_still_ours(sink);
                }
                Some((Standing::Doubtful, tries)) => {
                    self.lease.ask();
                    self.inbox.ring();
                    self.lease.await_try(tries, self.options.patience / SLICES);
                }
            }
        }
        // It hangs: as good as out of reach.
        self.lease.failed(self.clock.now());
        self.is_still_ours(sink)
    }

    fn is_still_ours(&self, sink: &Sink) -> bool {
        self.disowned.load(Ordering::SeqCst) == sink.disowned
            || self.lock().scheduler.is_ours(sink.key, sink.attempt)
    }

    /// Somebody else writes this task: it is listed, nothing more of it is written, and its work is stopped.
    pub(super) fn disown(&self, core: &mut Core, key: TaskKey, reason: Text, now: Moment) {
        self.disowned.fetch_add(1, Ordering::SeqCst);
        core.desynced.extend(core.journal.forget(key));
        core.scheduler.disown(key, reason, now, &mut core.out);
    }

    /// After a lapse: tasks that were taken meanwhile stay taken, and their work here is stopped.
    fn look_for_taken_tasks(self: &Arc<Self>) -> Result<(), StoreError> {
        let ours: Vec<(TaskKey, TaskId)> = {
            let core = self.lock();
            // Of a submission that nobody was told to be taken in, the answer to its write decides.
            let is_accepted = |key: &TaskKey| {
                core.scheduler.payload(*key).is_some_and(|p| p.completion.is_accepted())
            };
            let stored = core.scheduler.keys().filter(|key| core.journal.may_be_stored(*key));
            let ours = stored.filter(is_accepted);
            ours.filter_map(|key| Some((key, core.scheduler.snapshot(key)?.id.clone()))).collect()
        };
        if ours.is_empty() {
            return Ok(());
        }
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
                Some(stored) => {
                    let is_known = self.lock().scheduler.snapshot(key).is_none_or(|known| {
                        let (known, stored) = (&**known, &stored);
                        let state = |task: &TaskSnapshot| (task.status_version(), task.status());
                        let is_behind = stored.status_version() < known.status_version();
                        // An end is the last that is written: one that we do not know is not ours.
                        state(stored) == state(known)
                            || (is_behind && !stored.status().is_terminal())
                    });
                    !is_known || stored.supervisor.as_ref() != Some(self.incarnation())
                }
                None => self.lock().journal.is_stored(key),
            };
            if is_taken {
                let reason = "the task was taken over while this node's lease had expired";
                self.with(|core, now| self.disown(core, key, reason.into(), now));
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
