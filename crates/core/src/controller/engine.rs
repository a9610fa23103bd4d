//! The one place where the scheduler meets the world: every event goes through [`Engine::with`], which
//! carries out what the scheduler wants, and wakes whoever has something to do.
//!
//! One lock guards scheduler and journal. No I/O and no body ever runs under it. Signals are passed on
//! under it, so that a carrier hears them in the order in which they were decided.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::artifacts::attempt_files;
use crate::controller::faults::PersistFailure;
use crate::controller::guarded::{Asker, Core, Payload, Reach, Reported, hand_over};
use crate::controller::handle::{End, Outcome};
use crate::controller::inbox::Inbox;
use crate::controller::lease::Lease;
use crate::controller::submit::Submit;
use crate::executor::{AttemptSink, Executor, Launch, Report};
use crate::failure::{Failure, FailureKind};
use crate::id::{Ids, IncarnationId, TaskId};
use crate::ownership::Ownership;
use crate::scheduler::{Action, Policy, TaskKey};
use crate::status::Status;
use crate::store::{Node, TaskStore};
use crate::task::{Registry, TaskDefinition};
use crate::text::Text;
use crate::time::{Clock, Moment};

/// How often one thread looks again for reports before it leaves them to the ticker.
const MAX_ROUNDS: usize = 64;
/// A timer that is noticed so much too late says that the whole process stood still.
const OVERSLEPT: Duration = Duration::from_millis(50);
/// How long carriers have then to tell of signs of life that were waiting to be read.
const HEARING: Duration = Duration::from_millis(100);

/// Everything that a controller's threads share.
pub(super) struct Engine {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) registry: RwLock<Registry>,
    /// For each registered name: what a submission that changes nothing is held to.
    policies: RwLock<HashMap<Text, Arc<Policy>>>,
    pub(super) ownership: Ownership,
    pub(super) node: Node,
    pub(super) ids: Ids,
    pub(super) options: Options,
    pub(super) inbox: Inbox,
    pub(super) lease: Lease,
    /// How many tasks turned out to be somebody else's.
    pub(super) disowned: AtomicU64,
    /// The store is known to have our bucket count.
    pub(super) is_pinned: AtomicBool,
    core: Mutex<Core>,
    /// What carriers have reported since somebody looked.
    reports: Mutex<Vec<Reported>>,
    following: AtomicUsize,
    pub(super) writer: Condvar,
    /// The journal has something; to be seen without the lock.
    pub(super) has_writes: AtomicBool,
    ticker: Condvar,
    emptied: Condvar,
}

/// What a builder can set, apart from ports.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) grace: Duration,
    pub(super) lease_ttl: Duration,
    /// How long the store may leave a call unanswered.
    pub(super) patience: Duration,
    pub(super) poll_interval: Duration,
    pub(super) artifacts: Option<PathBuf>,
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "called by the builder alone")]
    pub(super) fn new(
        store: Arc<dyn TaskStore>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        registry: Registry,
        ownership: Ownership,
        node: Node,
        options: Options,
        core: Core,
    ) -> Self {
        Self {
            store,
            executor,
            clock,
            registry: RwLock::new(registry),
            policies: RwLock::default(),
            ownership,
            node,
            ids: Ids::new(),
            options,
            inbox: Inbox::default(),
            lease: Lease::default(),
            disowned: AtomicU64::new(0),
            is_pinned: AtomicBool::new(false),
            core: Mutex::new(core),
            reports: Mutex::default(),
            following: AtomicUsize::new(0),
            writer: Condvar::new(),
            has_writes: AtomicBool::new(false),
            ticker: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    pub(super) fn incarnation(&self) -> &IncarnationId {
        &self.node.incarnation
    }

    /// What a submission of this definition is held to: shared, unless it changes something.
    pub(super) fn policy(&self, submit: &Submit, definition: &TaskDefinition) -> Arc<Policy> {
        let make = || {
            let hard_stop = self.executor.abilities().hard_stop;
            Arc::new(submit.policy(definition, self.options.grace, hard_stop))
        };
        if !submit.keeps_defaults() {
            return make();
        }
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(policy) = policies.get(&submit.name) {
            return Arc::clone(policy);
        }
        drop(policies);
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(policies.entry(submit.name.clone()).or_insert_with(make))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reports(&self) -> MutexGuard<'_, Vec<Reported>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets something happen, after what was reported before it, and does what follows.
    pub(super) fn with<R>(self: &Arc<Self>, event: impl FnOnce(&mut Core, Moment) -> R) -> R {
        let mut core = self.lock();
        let now = self.clock.now();
        self.take_reports(&mut core, now);
        let result = event(&mut core, now);
        self.follow_up(core);
        result
    }

    /// Tells the scheduler what carriers have reported.
    fn take_reports(&self, core: &mut Core, now: Moment) {
        std::mem::swap(&mut *self.reports(), &mut core.reported);
        let Core { scheduler, reported, out, .. } = core;
        for Reported { key, attempt, report } in reported.drain(..) {
            scheduler.report(key, attempt, report, now, out);
        }
    }

    /// A carrier reports. A thread that follows up sees to it before it goes: so a worker does not queue
    /// for the lock, and reports in quick succession are dealt with together.
    fn report(self: &Arc<Self>, reported: Reported) {
        self.reports().push(reported);
        if self.following.load(Ordering::SeqCst) == 0 {
            self.follow_up(self.lock());
        }
    }

    /// Does what follows from events, until nothing more does.
    ///
    /// `following` counts the threads in here. One that leaves looks for reports after it has counted
    /// itself out, unless another is still in: so whoever reports and then finds somebody counted in can
    /// rely on a look that is yet to come.
    fn follow_up<'a>(self: &'a Arc<Self>, mut core: MutexGuard<'a, Core>) {
        self.following.fetch_add(1, Ordering::SeqCst);
        for _ in 0..MAX_ROUNDS {
            let now = self.clock.now();
            self.take_reports(&mut core, now);
            let launches = self.carry_out(&mut core, now);
            let wakes_writer = self.is_writer_wanted(&mut core);
            let to_wake = std::mem::take(&mut core.to_wake);
            let expects_launches = std::mem::take(&mut core.expects_launches);
            drop(core);
            // Only now: whoever wakes wants the lock.
            if wakes_writer {
                self.writer.notify_one();
            }
            if expects_launches {
                self.executor.expect();
            }
            if !launches.is_empty() {
                let tasks: Vec<_> = launches.iter().map(|(key, l)| (*key, l.attempt)).collect();
                let launches = launches.into_iter().map(|(_, launch)| launch).collect();
                let carriers = self.executor.launch_all(launches);
                to_wake.iter().for_each(|completion| completion.wake());
                core = self.lock();
                for ((key, attempt), carrier) in tasks.into_iter().zip(carriers) {
                    hand_over(&mut core, key, attempt, carrier);
                }
                continue;
            }
            to_wake.iter().for_each(|completion| completion.wake());
            let is_last = self.following.fetch_sub(1, Ordering::SeqCst) == 1;
            if !is_last || self.reports().is_empty() {
                return;
            }
            self.following.fetch_add(1, Ordering::SeqCst);
            core = self.lock();
        }
        // Enough of other people's work for this thread.
        core.is_ticker_needed = true;
        self.following.fetch_sub(1, Ordering::SeqCst);
        self.ticker.notify_one();
    }

    /// Carries out all actions, and gives free slots away, until nothing more follows.
    fn carry_out(self: &Arc<Self>, core: &mut Core, now: Moment) -> Vec<(TaskKey, Launch)> {
        loop {
            core.scheduler.dispatch(now, &mut core.out);
            if core.out.is_empty() {
                break;
            }
            let mut actions = std::mem::take(&mut core.out);
            for action in actions.drain(..) {
                self.act(core, action, now);
            }
            if core.out.is_empty() {
                // Keeps the allocation for the next round.
                core.out = actions;
            }
        }
        self.wake_ticker(core);
        if core.emptied_waits > 0 && core.scheduler.is_empty() {
            self.emptied.notify_all();
        }
        std::mem::take(&mut core.launches)
    }

    /// Wakes the ticker when something is due before it would wake by itself.
    pub(super) fn wake_ticker(&self, core: &mut Core) {
        if core.due().is_some_and(|due| core.ticker_until.is_none_or(|until| due < until)) {
            core.ticker_until = Some(Duration::ZERO);
            self.ticker.notify_one();
        }
    }

    fn act(self: &Arc<Self>, core: &mut Core, action: Action<Payload>, now: Moment) {
        match action {
            Action::Record { key, transition } => {
                core.expects_launches |= transition.to == Status::Starting;
                core.journal.record(key, transition, now.wall);
                if let Some(outcome) = core.journal.record_while_down(key, now.wall) {
                    self.settle(core, outcome, now);
                }
            }
            Action::Touch(key) => core.journal.touch(key, now.mono),
            Action::Launch(key) => self.launch(core, key, now),
            Action::Signal(key, signal) => {
                if let Some(payload) = core.scheduler.payload_mut(key) {
                    match &mut payload.reach {
                        Reach::Carrier(carrier) => carrier.signal(signal),
                        Reach::Early(signals) => signals.push(signal),
                    }
                }
            }
            Action::Reply(ticket, reply) => match core.tickets.remove(&ticket) {
                Some(Asker::Thread(slot)) => slot.fill(reply),
                Some(Asker::Command(id)) => self.inbox.answer(id, reply),
                None => {}
            },
            Action::Finished(finished) => {
                if finished.disowned {
                    core.journal.forget(finished.key);
                } else {
                    core.journal.leave(finished.key, &finished.snapshot);
                }
                let outcome = Arc::new(Outcome { snapshot: finished.snapshot });
                let disowned = finished.disowned;
                finished.payload.completion.end(End { outcome, disowned });
            }
        }
    }

    fn launch(self: &Arc<Self>, core: &mut Core, key: TaskKey, now: Moment) {
        match self.prepare(core, key) {
            Some(Ok(launch)) => core.launches.push((key, launch)),
            Some(Err((attempt, why))) => {
                let failure = Failure::new(FailureKind::LaunchFailed, why).permanent();
                let report = Report::LaunchFailed(failure);
                core.scheduler.report(key, attempt, report, now, &mut core.out);
            }
            None => {}
        }
    }

    /// What is to be launched, or of which attempt there is nothing to launch, and why.
    fn prepare(
        self: &Arc<Self>,
        core: &mut Core,
        key: TaskKey,
    ) -> Option<Result<Launch, (u32, Text)>> {
        let snapshot = core.scheduler.snapshot(key)?;
        let (task_id, attempt) = (snapshot.id.clone(), snapshot.attempt);
        let name = snapshot.name.clone();
        let files = self.options.artifacts.as_deref().map(|r| attempt_files(r, &task_id, attempt));
        let payload = core.scheduler.payload_mut(key)?;
        payload.reach = Reach::Early(Vec::new());
        let args = match &payload.work.args {
            Ok(args) => args.clone(),
            Err(why) => return Some(Err((attempt, why.clone()))),
        };
        Some(Ok(Launch {
            task_id,
            name,
            attempt,
            target: payload.work.target.clone(),
            args,
            upstream: Arc::clone(&payload.work.upstream),
            files,
            sink: Arc::new(Sink {
                engine: Arc::clone(self),
                key,
                attempt,
                disowned: self.disowned.load(Ordering::SeqCst),
            }),
        }))
    }

    /// The ticker's life: sleeps until something is due.
    pub(super) fn tick(self: &Arc<Self>) {
        loop {
            let mut core = self.lock();
            if core.is_over {
                return;
            }
            if std::mem::take(&mut core.is_ticker_needed) {
                self.follow_up(core);
                continue;
            }
            let (now, due) = (self.clock.monotonic(), core.due());
            match due {
                Some(due) if due <= now => {
                    drop(core);
                    if now.saturating_sub(due) > OVERSLEPT {
                        // This process stood still, and so did its ears: what carriers have to say comes first.
                        thread::sleep(HEARING);
                    }
                    self.with(|core, now| {
                        core.scheduler.tick(now, &mut core.out);
                        if core.journal.stalls_at().is_some_and(|at| at <= now.mono) {
                            let outcomes = core.journal.stalled(now.mono, now.wall);
                            self.settle_all(core, outcomes, now);
                        }
                    });
                }
                Some(due) => {
                    core.ticker_until = Some(due);
                    drop(self.ticker.wait_timeout(core, due - now));
                }
                None => {
                    core.ticker_until = None;
                    drop(self.ticker.wait(core));
                }
            }
        }
    }

    /// Waits until no task is left, at most this long; `true` when none is.
    pub(super) fn await_empty(&self, limit: Option<Duration>) -> bool {
        let until = limit.map(|limit| self.clock.monotonic().saturating_add(limit));
        let mut core = self.lock();
        while !core.scheduler.is_empty() {
            let left = until.map(|until| until.saturating_sub(self.clock.monotonic()));
            core.emptied_waits += 1;
            core = match left {
                Some(Duration::ZERO) => {
                    core.emptied_waits -= 1;
                    return false;
                }
                Some(left) => {
                    let wait = self.emptied.wait_timeout(core, left);
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.emptied.wait(core).unwrap_or_else(PoisonError::into_inner),
            };
            core.emptied_waits -= 1;
        }
        true
    }

    /// Tells all threads to end.
    pub(super) fn end_threads(&self) {
        self.lock().is_over = true;
        self.lease.end();
        self.writer.notify_all();
        self.ticker.notify_all();
        self.inbox.end();
    }

    /// Notes a fault of the store that is no task's write.
    pub(super) fn note_fault(&self, task_id: Option<TaskId>, error: String) {
        let at = self.clock.wall();
        let fault = PersistFailure { task_id, version: 0, at, error, dropped: false };
        self.lock().journal.faults.add(fault);
    }
}

/// Where one attempt reports to.
pub(super) struct Sink {
    engine: Arc<Engine>,
    pub(super) key: TaskKey,
    pub(super) attempt: u32,
    /// The engine's count when the task was ours: none has been added, so it still is.
    pub(super) disowned: u64,
}

impl AttemptSink for Sink {
    fn report(&self, report: Report) {
        self.engine.report(Reported { key: self.key, attempt: self.attempt, report });
    }

    fn may_begin(&self) -> bool {
        self.engine.may_begin(self)
    }
}
