//! A holder that stands still for longer than its lease, or cannot renew it: what may begin, and what is noticed.
#![allow(clippy::unwrap_used, reason = "helpers outside of test functions")]

mod support;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use chongming_core::store::{Now, TaskStore};
use chongming_core::{
    Abilities, AttemptSink, Backoff, Carrier, Clock, CloseMode, Controller, Executor, Launch,
    ManualClock, ReconcileOutcome, Report, RetryPolicy, Status, Submit, SubmitError, Target,
    TaskContext, TaskDefinition, TaskError, ThreadExecutor, Timestamp, UnsupportedTarget,
    reconcile,
};
use support::{Faulty, LIMIT, id, looping};

const TTL: Duration = Duration::from_secs(30);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::starting_at(Timestamp::from_micros(0)))
}

/// As when this holder of task `a` stood still for longer than its lease while the store had it in this state,
/// and another looked meanwhile.
fn lapse(store: &Faulty, holder: &Controller, status: Status) {
    while store.get(&id("a")).unwrap().unwrap().status() != status {
        std::thread::yield_now();
    }
    store.retire(holder.incarnation(), Now::Store).unwrap();
    let found = reconcile(store, holder.ownership(), false, None, &*clock()).unwrap();
    let outcomes: Vec<_> = found.iter().map(|found| found.outcome).collect();
    assert_eq!(outcomes, [ReconcileOutcome::MarkedLost], "{found:?}");
}

#[test]
fn a_holder_that_stood_still_after_writing_the_start_launches_nothing_that_was_taken() {
    let (store, clock) = (Faulty::new(), clock());
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let controller = builder.register(definition).build().unwrap();
    let barrier = Arc::new(Barrier::new(2));
    *store.hang_done.lock().unwrap() = Some(Arc::clone(&barrier));
    let run = std::thread::scope(|scope| {
        let submitted = scope.spawn(|| controller.submit(Submit::new("loop").id(id("a"))).unwrap());
        barrier.wait();
        // The start is written, and now the process stands still for longer than its lease.
        lapse(&store, &controller, Status::Starting);
        clock.advance(2 * TTL);
        barrier.wait();
        submitted.join().unwrap()
    });
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Lost);
    assert_eq!(controller.desynced_tasks(), [id("a")]);
    assert!(runs.try_recv().is_err(), "its body never ran");
    assert_eq!(store.history(&id("a"), 0, 100).unwrap().last().unwrap().to, Status::Lost);
}

#[test]
fn a_holder_that_wakes_up_looks_before_it_retries_even_if_its_store_was_down() {
    let (store, clock) = (Faulty::new(), clock());
    let attempts = |say: Sender<u32>| {
        let say = Mutex::new(say);
        let retry = RetryPolicy::attempts(9).with_backoff(Backoff::Fixed(TTL));
        let body = move |ctx: &TaskContext, ()| -> Result<(), TaskError> {
            say.lock().unwrap().send(ctx.attempt()).unwrap();
            Err(TaskError::new("not yet"))
        };
        TaskDefinition::new("t", body).retry(retry)
    };
    let (say, attempted) = channel();
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let controller = builder.register(attempts(say)).build().unwrap();
    let run = controller.submit(Submit::new("t").id(id("a"))).unwrap();
    assert_eq!(attempted.recv().unwrap(), 1);
    while store.get(&id("a")).unwrap().unwrap().status() != Status::RetryWait {
        std::thread::yield_now();
    }
    // Another takes the task over; then the first holder finds that it cannot write, and stands still.
    store.retire(controller.incarnation(), Now::Store).unwrap();
    let (say, _attempted) = channel();
    let other = Controller::builder().store(store.clone()).register(attempts(say)).build().unwrap();
    other.submit(Submit::new("t").id(id("a"))).unwrap();
    store.fails.store(true, Ordering::SeqCst);
    controller.submit(Submit::new("t").id(id("b"))).unwrap();
    assert_eq!(attempted.recv().unwrap(), 1, "the other task: a store that is down stops no work");
    clock.advance(2 * TTL);
    // Anything makes the controller look at its clock.
    controller.submit(Submit::new("t").id(id("c"))).unwrap();
    while controller.desynced_tasks() != [id("a")] {
        std::thread::yield_now();
    }
    run.wait(Some(LIMIT)).unwrap();
    let attempts: Vec<_> = attempted.try_iter().collect();
    assert!(
        attempts.iter().filter(|attempt| **attempt == 2).count() <= 1,
        "only of b: {attempts:?}"
    );
}

/// Threads that meet the barrier before they say that they are launched, after that, and before they begin.
struct Hesitant(ThreadExecutor, Arc<Barrier>);

struct HesitantSink(Arc<dyn AttemptSink>, Arc<Barrier>);

impl AttemptSink for HesitantSink {
    fn report(&self, report: Report) {
        let is_launch = report == Report::Launched;
        if is_launch {
            self.1.wait();
        }
        self.0.report(report);
        if is_launch {
            self.1.wait();
            self.1.wait();
        }
    }

    fn may_begin(&self) -> bool {
        self.0.may_begin()
    }
}

impl Executor for Hesitant {
    fn name(&self) -> &'static str {
        "hesitant"
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        self.0.check(target)
    }

    fn launch(&self, mut launch: Launch) -> Arc<dyn Carrier> {
        launch.sink = Arc::new(HesitantSink(launch.sink, Arc::clone(&self.1)));
        self.0.launch(launch)
    }
}

/// A holder whose thread stands still before the first step of its body, while the store has its task in this
/// state and another declares it lost.
fn does_not_begin_for_another(written: Status) {
    let (store, clock, barrier) = (Faulty::new(), clock(), Arc::new(Barrier::new(2)));
    let (definition, runs) = looping();
    let executor = Arc::new(Hesitant(ThreadExecutor::new(), Arc::clone(&barrier)));
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let controller = builder.executor(executor).register(definition).build().unwrap();
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    let held = Arc::new(Barrier::new(2));
    let is_held = written == Status::Starting;
    if is_held {
        *store.holds.lock().unwrap() = Some(Arc::clone(&held));
    }
    barrier.wait();
    barrier.wait();
    if is_held {
        held.wait();
    }
    lapse(&store, &controller, written);
    clock.advance(2 * TTL);
    barrier.wait();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Lost);
    if is_held {
        held.wait();
    }
    assert!(runs.try_recv().is_err(), "its body never ran");
    assert_eq!(controller.desynced_tasks(), [id("a")]);
}

#[test]
fn a_body_whose_thread_stood_still_before_its_first_step_does_not_begin_for_another() {
    does_not_begin_for_another(Status::Running);
}

#[test]
fn nor_does_it_when_the_store_was_not_told_yet_that_it_runs() {
    does_not_begin_for_another(Status::Starting);
}

#[test]
fn a_renewal_that_fails_when_the_holder_wakes_does_not_make_the_store_out_of_reach() {
    let (store, clock, barrier) = (Faulty::new(), clock(), Arc::new(Barrier::new(2)));
    let (definition, runs) = looping();
    let executor = Arc::new(Hesitant(ThreadExecutor::new(), Arc::clone(&barrier)));
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let controller = builder.executor(executor).register(definition).build().unwrap();
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    barrier.wait();
    barrier.wait();
    lapse(&store, &controller, Status::Running);
    // It stands still in the midst of a renewal, of which nothing comes.
    let held = Arc::new(Barrier::new(2));
    *store.hang_beat.lock().unwrap() = Some(Arc::clone(&held));
    while store.hang_beat.lock().unwrap().is_some() {
        clock.advance(TTL / 100);
        std::thread::yield_now();
    }
    held.wait();
    clock.advance(2 * TTL);
    store.beat_loses_answer.store(true, Ordering::SeqCst);
    held.wait();
    while controller.persist_failures().is_empty() {
        std::thread::yield_now();
    }
    barrier.wait();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Lost);
    assert!(runs.try_recv().is_err(), "its body never ran");
}

/// A holder whose running task was taken from it, and which then meets this fault when it renews.
fn is_noticed_after(fault: impl Fn(&Faulty), mended: impl Fn(&Faulty)) {
    let (store, clock) = (Faulty::new(), clock());
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let controller = builder.register(definition).build().unwrap();
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    lapse(&store, &controller, Status::Running);
    fault(&store);
    clock.advance(2 * TTL);
    // Whatever is written, the lease is renewed before.
    controller.submit(Submit::new("loop").id(id("b"))).unwrap();
    mended(&store);
    clock.advance(TTL);
    controller.submit(Submit::new("loop").id(id("c"))).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Lost);
    assert_eq!(controller.desynced_tasks(), [id("a")]);
}

#[test]
fn a_lapse_is_noticed_although_the_look_for_its_cost_failed() {
    is_noticed_after(
        |store| store.query_fails.store(true, Ordering::SeqCst),
        |store| store.query_fails.store(false, Ordering::SeqCst),
    );
}

#[test]
fn a_lapse_is_noticed_although_the_answer_that_told_of_it_was_lost() {
    is_noticed_after(|store| store.beat_loses_answer.store(true, Ordering::SeqCst), |_| {});
}

#[test]
fn a_renewal_that_hangs_does_not_hang_the_tasks() {
    let (store, clock, barrier) = (Faulty::new(), clock(), Arc::new(Barrier::new(2)));
    let (definition, runs) = looping();
    let patience = Duration::from_millis(20);
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(TTL);
    let builder = builder.store_patience(patience).register(definition);
    let controller = builder.build().unwrap();
    controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    *store.hang_beat.lock().unwrap() = Some(Arc::clone(&barrier));
    clock.advance(2 * TTL);
    std::thread::scope(|scope| {
        let submitted = scope.spawn(|| controller.submit(Submit::new("loop").id(id("b"))).unwrap());
        barrier.wait();
        while runs.try_recv().is_err() {
            clock.advance(patience);
            std::thread::yield_now();
        }
        barrier.wait();
        submitted.join().unwrap();
    });
}

#[test]
fn what_a_store_did_not_take_is_written_as_soon_as_it_takes_a_beat() {
    let (store, clock) = (Faulty::new(), clock());
    let (definition, runs) = looping();
    let ttl = Duration::from_millis(100);
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(ttl);
    let builder = builder.max_parallel(2);
    let controller = builder.register(definition).build().unwrap();
    controller.submit(Submit::new("loop").id(id("first"))).unwrap();
    runs.recv().unwrap();
    let lease = || store.nodes(Now::Store).unwrap()[0].lease_until;
    let first = lease();
    while lease() == first {
        clock.advance(ttl / 100);
        std::thread::yield_now();
    }
    store.fails.store(true, Ordering::SeqCst);
    controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    store.fails.store(false, Ordering::SeqCst);
    // Enough for a beat, and long before the pause between two tries is over.
    clock.advance(ttl / 4);
    while store.get(&id("a")).unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// Its wall clock is a second later at each look.
#[derive(Default)]
struct Hasty(AtomicI64);

impl Clock for Hasty {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn each_task_is_lost_from_when_it_was_found() {
    let store = Faulty::new();
    let (definition, runs) = looping();
    let controller = Controller::builder().store(store.clone()).register(definition);
    let controller = controller.max_parallel(2).build().unwrap();
    for task in ["a", "b"] {
        controller.submit(Submit::new("loop").id(id(task))).unwrap();
        runs.recv().unwrap();
        while store.get(&id(task)).unwrap().unwrap().status() != Status::Running {
            std::thread::yield_now();
        }
    }
    store.retire(controller.incarnation(), Now::Store).unwrap();
    reconcile(&*store, controller.ownership(), false, None, &Hasty::default()).unwrap();
    let ended = |task| store.get(&id(task)).unwrap().unwrap().ended_at.map(Timestamp::as_micros);
    let mut ends = [ended("a"), ended("b")];
    ends.sort_unstable();
    assert_eq!(ends, [Some(0), Some(1_000_000)]);
}

#[test]
fn no_renewal_follows_the_end_of_a_node() {
    let (store, clock) = (Faulty::new(), clock());
    let ttl = 10 * LIMIT;
    let builder = Controller::builder().store(store.clone()).clock(clock.clone()).lease_ttl(ttl);
    let definition = TaskDefinition::new("t", |_: &TaskContext, ()| Ok::<_, TaskError>(()));
    let controller = builder.register(definition).build().unwrap();
    controller.submit(Submit::new("t")).unwrap().wait(Some(LIMIT)).unwrap();
    let held = Arc::new(Barrier::new(2));
    *store.hang_beat.lock().unwrap() = Some(Arc::clone(&held));
    while store.hang_beat.lock().unwrap().is_some() {
        clock.advance(ttl / 100);
        std::thread::yield_now();
    }
    // It closes in the midst of a renewal, which reaches the store after that.
    held.wait();
    controller.close(CloseMode::Stop, Duration::from_millis(100), false);
    store.beat_loses_answer.store(true, Ordering::SeqCst);
    held.wait();
    while controller.persist_failures().is_empty() {
        std::thread::yield_now();
    }
    let until = Instant::now() + LIMIT;
    while store.nodes(Now::Store).unwrap().iter().any(|row| row.alive) {
        assert!(Instant::now() < until, "it looks alive for as long as its lease lasts");
        std::thread::yield_now();
    }
}

#[test]
fn a_holder_that_was_out_of_reach_takes_nothing_back_that_was_never_its_own() {
    let store = Faulty::new();
    let controller = || {
        let (definition, runs) = looping();
        let builder = Controller::builder().store(store.clone()).lease_ttl(Duration::from_secs(1));
        (builder.register(definition).build().unwrap(), runs)
    };
    let (first, first_runs) = controller();
    first.submit(Submit::new("loop").id(id("a"))).unwrap();
    first_runs.recv().unwrap();

    let (second, runs) = controller();
    let barrier = Arc::new(Barrier::new(2));
    *store.holds.lock().unwrap() = Some(Arc::clone(&barrier));
    store.beat_loses_answer.store(true, Ordering::SeqCst);
    let lease_of_second = || {
        let nodes = store.nodes(Now::Store).unwrap();
        let second = nodes.iter().find(|row| row.node.incarnation == *second.incarnation());
        second.map(|row| row.lease_until)
    };
    let submitted = std::thread::scope(|scope| {
        let submitted = scope.spawn(|| second.submit(Submit::new("loop").id(id("a"))));
        barrier.wait();
        // It reaches the store again: a second beat comes after what followed from the first.
        for _ in 0..2 {
            let before = lease_of_second();
            while lease_of_second() == before {
                std::thread::yield_now();
            }
        }
        barrier.wait();
        submitted.join().unwrap()
    });
    assert!(matches!(submitted, Err(SubmitError::Exists { .. })));
    assert!(runs.try_recv().is_err() && second.desynced_tasks().is_empty());
}
