//! Random histories: whatever happens in whatever order, the invariants of spec 17 hold and all tasks end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::executor::{AttemptEnd, Report, Signal};
use crate::failure::{Failure, FailureKind};
use crate::retry::{Backoff, RetryPolicy};
use crate::timeout::Timeout;
use crate::transition::Transition;
use crate::value::Value;

mod cases;

const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
enum Event {
    Submit { priority: i32, bucket: Option<u32>, tags: Vec<bool>, policy: usize, blocked: bool },
    Release(usize),
    Skip(usize),
    Settle(usize),
    SettleAll,
    Report(usize, usize),
    End(usize, usize),
    Pause(usize, u64),
    Resume(usize),
    Hasten(usize),
    Disown(usize),
    Advance(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<usize>;
    prop_oneof![
        6 => (0..3i32, prop::option::of(0u32..3), prop::collection::vec(any::<bool>(), 3), 0usize..5, prop::bool::weighted(0.2))
            .prop_map(|(priority, bucket, tags, policy, blocked)| Event::Submit { priority, bucket, tags, policy, blocked }),
        1 => index().prop_map(Event::Release),
        1 => index().prop_map(Event::Skip),
        4 => index().prop_map(Event::Settle),
        4 => Just(Event::SettleAll),
        10 => (index(), 0usize..10).prop_map(|(i, kind)| Event::Report(i, kind)),
        3 => (index(), 0usize..6).prop_map(|(i, cause)| Event::End(i, cause)),
        3 => (index(), 1u64..40).prop_map(|(i, limit)| Event::Pause(i, limit)),
        2 => index().prop_map(Event::Resume),
        1 => index().prop_map(Event::Hasten),
        1 => index().prop_map(Event::Disown),
        4 => (1u64..60).prop_map(Event::Advance),
    ]
}

fn policy(number: usize) -> Policy {
    let retry = RetryPolicy {
        max_attempts: NonZeroU32::new(1 + number as u32 % 3).unwrap(),
        backoff: Backoff::Fixed(MS * 10 * (number as u32 % 2)),
        retry_on: None,
    };
    let limit = |n: u32, on: bool| on.then(|| MS * n);
    let timeout = Timeout {
        start: limit(50, number == 1),
        per_attempt: limit(40, number >= 2),
        idle: limit(20, number >= 3),
    };
    Policy { retry, timeout, grace: MS * 15, hard_stop: number.is_multiple_of(2) }
}

/// What a controller, its store and its carriers would hold, and what must be true of it.
struct World {
    scheduler: Scheduler<()>,
    limits: Limits,
    now: Moment,
    out: Vec<Action<()>>,
    keys: Vec<TaskKey>,
    trail: HashMap<TaskKey, Vec<Transition>>,
    settled: HashMap<TaskKey, u64>,
    max_attempts: HashMap<TaskKey, u32>,
    /// Attempts on a carrier, and the epoch of a pause that it was told.
    carriers: BTreeMap<TaskKey, (u32, Option<u64>)>,
    tickets: BTreeSet<Ticket>,
    next_ticket: u64,
    /// What the next submissions are tied to.
    siblings: Option<Siblings>,
    finished: usize,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self {
            scheduler: Scheduler::new(&limits, 42),
            limits,
            now: Moment { wall: Timestamp::from_micros(0), mono: Duration::ZERO },
            out: Vec::new(),
            keys: Vec::new(),
            trail: HashMap::new(),
            settled: HashMap::new(),
            max_attempts: HashMap::new(),
            carriers: BTreeMap::new(),
            tickets: BTreeSet::new(),
            next_ticket: 0,
            siblings: None,
            finished: 0,
        }
    }

    fn pick(&self, i: usize) -> Option<TaskKey> {
        (!self.keys.is_empty()).then(|| self.keys[i % self.keys.len()])
    }

    fn request(&mut self, key: TaskKey, request: Request) {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.tickets.insert(ticket);
        let before = self.scheduler.snapshot(key).cloned();
        let asked =
            self.scheduler.request(key, request, None, Some(ticket), self.now, &mut self.out);
        if asked.is_err() {
            assert_eq!(self.scheduler.snapshot(key).cloned(), before, "a refusal changes nothing");
            self.tickets.remove(&ticket);
        }
    }

    fn report(&mut self, key: TaskKey, kind: usize) {
        let Some(&(attempt, pause)) = self.carriers.get(&key) else { return };
        let failure = |kind| Failure::new(kind, "x");
        let report = match kind {
            0 => Report::Launched,
            1 => Report::Activity,
            2 => pause.map_or(Report::Activity, |epoch| Report::Paused { epoch }),
            3 => Report::Ended(AttemptEnd::Completed(Value::Null)),
            4 => Report::Ended(AttemptEnd::Failed(failure(FailureKind::Exception))),
            5 => Report::Ended(AttemptEnd::Interrupted { message: None }),
            6 => Report::Ended(AttemptEnd::Vanished { message: "gone".into() }),
            7 => Report::Ended(AttemptEnd::Unkillable { message: "it goes on".into() }),
            8 => Report::Paused { epoch: 0 },
            _ => {
                let status = self.scheduler.snapshot(key).map(|task| task.status());
                if matches!(status, Some(Status::Starting | Status::Stopping)) {
                    Report::LaunchFailed(failure(FailureKind::LaunchFailed))
                } else {
                    Report::Launched
                }
            }
        };
        if matches!(report, Report::Ended(_) | Report::LaunchFailed(_)) {
            self.carriers.remove(&key);
        }
        self.scheduler.report(key, attempt, report, self.now, &mut self.out);
    }

    fn settle(&mut self, key: TaskKey) {
        if let Some(version) = self.trail.get(&key).and_then(|t| t.last()).map(|t| t.version) {
            self.settled.insert(key, version);
            self.scheduler.settled(key, version, self.now, &mut self.out);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Submit { priority, bucket, tags, policy: number, blocked } => {
                let id = TaskId::new(format!("t{}", self.keys.len())).unwrap();
                let mut snapshot = TaskSnapshot::pending(id, "t", "me".into(), self.now.wall);
                let names = ["gpu", "net", "plain"].into_iter().zip(tags);
                snapshot.tags = names.filter(|(_, on)| *on).map(|(name, _)| name.into()).collect();
                (snapshot.priority, snapshot.bucket) = (priority, bucket);
                let policy = policy(number);
                snapshot.max_attempts = policy.retry.max_attempts.get();
                let max_attempts = snapshot.max_attempts;
                let entrance = if blocked { Entrance::Blocked } else { Entrance::Queued };
                let submission = Submission {
                    snapshot: snapshot.into(),
                    policy: Arc::new(policy),
                    entrance,
                    siblings: self.siblings.clone(),
                    payload: (),
                };
                let key = self.scheduler.submit(submission, self.now, &mut self.out).ok().unwrap();
                self.max_attempts.insert(key, max_attempts);
                self.keys.push(key);
            }
            Event::Release(i) => {
                if let Some(key) = self.pick(i) {
                    self.scheduler.release(key, self.now, &mut self.out);
                }
            }
            Event::Skip(i) => {
                if let Some(key) = self.pick(i) {
                    self.scheduler.skip(key, None, self.now, &mut self.out);
                }
            }
            Event::Settle(i) => {
                if let Some(key) = self.pick(i) {
                    self.settle(key);
                }
            }
            Event::SettleAll => {
                for key in self.keys.clone() {
                    self.settle(key);
                }
            }
            Event::Report(i, kind) => {
                let carried: Vec<_> = self.carriers.keys().copied().collect();
                if !carried.is_empty() {
                    self.report(carried[i % carried.len()], kind);
                }
            }
            Event::End(i, cause) => {
                use EndCause::{Cancel, FailFast, Shutdown, Stop, TimeoutAttempt, TimeoutIdle};
                let cause = [Cancel, FailFast, Shutdown, Stop, TimeoutAttempt, TimeoutIdle][cause];
                if let Some(key) = self.pick(i) {
                    self.request(key, Request::End(cause));
                }
            }
            Event::Pause(i, limit) => {
                if let Some(key) = self.pick(i) {
                    self.request(key, Request::Pause { limit: MS * limit as u32 });
                }
            }
            Event::Resume(i) => {
                if let Some(key) = self.pick(i) {
                    self.request(key, Request::Resume);
                }
            }
            Event::Hasten(i) => {
                if let Some(key) = self.pick(i) {
                    self.scheduler.hasten(key, self.now, &mut self.out);
                }
            }
            Event::Disown(i) => {
                if let Some(key) = self.pick(i) {
                    self.scheduler.disown(key, "taken".into(), self.now, &mut self.out);
                }
            }
            Event::Advance(ms) => {
                self.now.mono += MS * ms as u32;
                self.now.wall = self.now.wall.after(MS * ms as u32);
                self.scheduler.tick(self.now, &mut self.out);
                assert!(self.scheduler.next_due().is_none_or(|due| due > self.now.mono));
            }
        }
        self.scheduler.dispatch(self.now, &mut self.out);
        self.carry_out();
        self.check_limits();
    }

    fn carry_out(&mut self) {
        for action in std::mem::take(&mut self.out) {
            match action {
                Action::Record { key, transition } => {
                    let trail = self.trail.entry(key).or_default();
                    let (version, status) =
                        trail.last().map_or((0, Status::Pending), |last| (last.version, last.to));
                    assert_eq!((transition.version, transition.from), (version + 1, status));
                    trail.push(transition);
                }
                Action::Launch(key) => {
                    let trail = &self.trail[&key];
                    let starting = trail.iter().rfind(|t| t.to == Status::Starting).unwrap();
                    assert!(
                        self.settled[&key] >= starting.version,
                        "starting must be written first"
                    );
                    let attempt = trail.iter().filter(|t| t.to == Status::Starting).count() as u32;
                    assert!(attempt <= self.max_attempts[&key]);
                    let before = self.carriers.insert(key, (attempt, None));
                    assert_eq!(before, None, "two attempts overlap");
                }
                Action::Signal(key, signal) => {
                    // A carrier that ended in the same step may be told something; it will not listen.
                    if let Some((_, pause)) = self.carriers.get_mut(&key) {
                        match signal {
                            Signal::Pause { epoch } => *pause = Some(epoch),
                            Signal::Resume | Signal::Stop { .. } | Signal::Kill => *pause = None,
                        }
                    }
                }
                Action::Reply(ticket, _) => {
                    assert!(self.tickets.remove(&ticket), "a ticket is answered once");
                }
                Action::Touch(_) => {}
                Action::Finished(finished) => {
                    let status = finished.snapshot.status();
                    assert!(status.is_terminal());
                    if !finished.disowned {
                        assert_eq!(self.settled[&finished.key], finished.snapshot.status_version());
                        assert_eq!(self.trail[&finished.key].last().unwrap().to, status);
                    }
                    let carrier = self.carriers.remove(&finished.key);
                    assert!(carrier.is_none() || status == Status::Lost, "{status} with a carrier");
                    self.finished += 1;
                }
            }
        }
    }

    fn check_limits(&self) {
        let snapshots = || self.scheduler.keys().filter_map(|key| self.scheduler.snapshot(key));
        let carried = || snapshots().filter(|task| task.status().holds_slot());
        let slots = carried().count();
        assert!(slots <= self.limits.max_parallel);
        let mut buckets = HashMap::new();
        for bucket in carried().filter_map(|task| task.bucket) {
            *buckets.entry(bucket).or_insert(0) += 1;
        }
        let limit = self.limits.max_parallel_per_bucket.unwrap_or(usize::MAX);
        assert!(buckets.values().all(|used| *used <= limit));
        for (resource, permits) in &self.limits.resources {
            assert!(carried().filter(|task| task.tags.contains(resource)).count() <= *permits);
        }
        for key in self.scheduler.keys() {
            if let Some(Explanation::Slots { .. }) = self.scheduler.explain(key, self.now.mono) {
                assert_eq!(
                    slots, self.limits.max_parallel,
                    "a slot is free and nothing is in the way"
                );
            }
        }
    }

    /// Everybody is told to stop, nobody refuses: all must end in bounded steps.
    fn drain(&mut self) {
        for key in self.scheduler.keys().collect::<Vec<_>>() {
            self.request(key, Request::End(EndCause::Shutdown));
        }
        self.handle(Event::SettleAll);
        for key in self.carriers.keys().copied().collect::<Vec<_>>() {
            self.report(key, 5);
        }
        self.carry_out();
        self.handle(Event::SettleAll);
        assert!(self.scheduler.is_empty(), "{} tasks are left", self.scheduler.len());
        assert_eq!(self.finished, self.keys.len());
        assert!(self.tickets.is_empty(), "a ticket was never answered");
        assert_eq!(self.scheduler.next_due(), None, "a timer is left");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn every_history_keeps_the_invariants_and_drains(
        events in prop::collection::vec(event(), 1..100),
        max_parallel in 1usize..5,
        per_bucket in prop::option::of(1usize..3),
    ) {
        let resources = BTreeMap::from([("gpu".into(), 1), ("net".into(), 2)]);
        let mut world =
            World::new(Limits { max_parallel, max_parallel_per_bucket: per_bucket, resources });
        for event in events {
            world.handle(event);
        }
        world.drain();
    }
}
