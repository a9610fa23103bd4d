//! What the engine's lock guards: scheduler, journal, and who waits for what.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::controller::handle::Completion;
use crate::controller::journal::Journal;
use crate::controller::submit::Work;
use crate::executor::{Carrier, Launch, Report, Signal};
use crate::id::{CommandId, TaskId};
use crate::scheduler::{Action, Explanation, Reply, Scheduler, TaskKey, Ticket};

/// After so many look-outs for nothing in a row, the writer looks out only once in a while.
const MAX_IN_VAIN: u32 = 8;
const ONCE_IN: u32 = 64;

/// What the lock guards.
pub(super) struct Core {
    pub(super) scheduler: Scheduler<Payload>,
    pub(super) journal: Journal,
    pub(super) out: Vec<Action<Payload>>,
    pub(super) is_open: bool,
    /// The threads are to end.
    pub(super) is_over: bool,
    /// How long what a store that is down did not take is still offered to it, once the threads are to end.
    pub(super) last_tries_until: Option<Instant>,
    pub(super) desynced: Vec<TaskId>,
    pub(super) tickets: HashMap<Ticket, Asker>,
    pub(super) next_ticket: u64,
    pub(super) launches: Vec<(TaskKey, Launch)>,
    /// Tasks are to start as soon as that is stored.
    pub(super) expects_launches: bool,
    /// Submissions that somebody waits for were taken in.
    pub(super) to_wake: Vec<Arc<Completion>>,
    pub(super) reported: Vec<Reported>,
    /// Reports wait, and nobody else sees to them.
    pub(super) is_ticker_needed: bool,
    pub(super) writer_waits: bool,
    /// The waiting writer looks up soon by itself.
    pub(super) writer_watches: bool,
    /// How often the writer could have looked out since that last brought something.
    pub(super) in_vain: u32,
    pub(super) ticker_until: Option<Duration>,
    pub(super) emptied_waits: usize,
}

/// A carrier's report on its way to the scheduler.
pub(super) struct Reported {
    pub(super) key: TaskKey,
    pub(super) attempt: u32,
    pub(super) report: Report,
}

/// What goes with a task.
pub(super) struct Payload {
    pub(super) work: Work,
    pub(super) completion: Arc<Completion>,
    pub(super) reach: Reach,
}

/// Where signals to an attempt go.
pub(super) enum Reach {
    /// There is no carrier yet: these wait for it.
    Early(Vec<Signal>),
    Carrier(Arc<dyn Carrier>),
}

impl Payload {
    pub(super) fn new(work: Work, completion: Arc<Completion>) -> Self {
        Self { work, completion, reach: Reach::Early(Vec::new()) }
    }
}

/// Who waits for a reply.
pub(super) enum Asker {
    /// A thread of this process.
    Thread(Arc<Slot>),
    /// The issuer of a command.
    Command(CommandId),
}

/// Where a thread waits for a reply.
#[derive(Default)]
pub(super) struct Slot {
    reply: Mutex<Option<Reply>>,
    filled: Condvar,
}

impl Slot {
    pub(super) fn wait(&self) -> Reply {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *reply {
                Some(reply) => return reply,
                None => reply = self.filled.wait(reply).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(super) fn fill(&self, with: Reply) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(with);
        self.filled.notify_all();
    }
}

impl Core {
    pub(super) fn new(scheduler: Scheduler<Payload>, journal: Journal) -> Self {
        Self {
            scheduler,
            journal,
            out: Vec::new(),
            is_open: true,
            is_over: false,
            last_tries_until: None,
            desynced: Vec::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            launches: Vec::new(),
            expects_launches: false,
            to_wake: Vec::new(),
            reported: Vec::new(),
            is_ticker_needed: false,
            writer_waits: false,
            writer_watches: false,
            in_vain: 0,
            ticker_until: None,
            emptied_waits: 0,
        }
    }

    /// May the writer look out for more to do before it sleeps? Only where there is a fair chance; each
    /// question counts as in vain until something is found.
    pub(super) const fn may_look_out(&mut self) -> bool {
        self.in_vain = self.in_vain.wrapping_add(1);
        self.in_vain <= MAX_IN_VAIN || self.in_vain.is_multiple_of(ONCE_IN)
    }

    /// A ticket whose reply goes to this asker.
    pub(super) fn ticket(&mut self, asker: Asker) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.tickets.insert(ticket, asker);
        ticket
    }

    /// The request of this ticket was refused.
    pub(super) fn void(&mut self, ticket: Ticket) {
        self.tickets.remove(&ticket);
    }

    /// What a task waits for.
    pub(super) fn explain(&self, key: TaskKey, now: Duration) -> Option<Explanation> {
        let explanation = self.scheduler.explain(key, now)?;
        let Explanation::Upstream { .. } = explanation else { return Some(explanation) };
        let upstream = self.scheduler.payload(key).map_or(&[][..], |p| &p.work.waits_for);
        let unfinished = upstream.iter().filter(|id| self.scheduler.key(id).is_some());
        Some(Explanation::Upstream { tasks: unfinished.cloned().collect() })
    }

    /// When time alone has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        self.scheduler.next_due().into_iter().chain(self.journal.stalls_at()).min()
    }
}

/// Keeps the carrier of a launch, and passes on what was decided meanwhile.
pub(super) fn hand_over(core: &mut Core, key: TaskKey, attempt: u32, carrier: Arc<dyn Carrier>) {
    let is_current = core.scheduler.snapshot(key).is_some_and(|task| task.attempt == attempt);
    if let Some(payload) = core.scheduler.payload_mut(key).filter(|_| is_current) {
        if let Reach::Early(signals) = &mut payload.reach {
            signals.drain(..).for_each(|signal| carrier.signal(signal));
        }
        payload.reach = Reach::Carrier(carrier);
    }
}
