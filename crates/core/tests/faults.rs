//! The controller on a store that fails, hangs, loses answers, or is written by somebody else.
#![allow(clippy::unwrap_used, reason = "helpers outside of test functions")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use chongming_core::store::{Entry, Now, TaskStore};
use chongming_core::{
    CloseMode, Controller, InMemoryStore, ManualClock, Status, Submit, SubmitError, TaskContext,
    TaskDefinition, TaskError, Timestamp, Trigger, machine, reconcile,
};
use support::{Faulty, LIMIT, id, looping, words};

fn seven() -> TaskDefinition {
    TaskDefinition::new("t", |_: &TaskContext, ()| Ok::<_, TaskError>(7i64))
}

fn versions(store: &dyn TaskStore, task: &str) -> Vec<u64> {
    store.history(&id(task), 0, 100).unwrap().iter().map(|row| row.version).collect()
}

#[test]
fn a_store_that_fails_costs_visibility_and_never_work() {
    let store = Faulty::new();
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).max_parallel(2);
    let controller = builder.register(definition).register(seven()).build().unwrap();
    let long = controller.submit(Submit::new("loop").id(id("long"))).unwrap();
    runs.recv().unwrap();
    store.fails.store(true, Ordering::SeqCst);
    let run = controller.submit(Submit::new("t").id(id("a"))).unwrap();
    assert!(run.wait(Some(LIMIT)).unwrap().ok(), "it ran all the same");
    assert!(run.transitions().unwrap().is_empty(), "and nothing of it is written");
    let faults = controller.persist_failures();
    assert!(faults.iter().any(|f| f.task_id == Some(id("a")) && f.error.contains("disk is full")));
    long.stop(None).unwrap();
    assert_eq!(long.wait(Some(LIMIT)).unwrap().status(), Status::Stopped);
    store.fails.store(false, Ordering::SeqCst);
    let closed = controller.close(CloseMode::Wait, LIMIT, false);
    assert!(closed.is_clean(), "close tries once more: {closed:?}");
    assert_eq!(store.get(&id("a")).unwrap().unwrap().status(), Status::Succeeded);
    assert_eq!(versions(&*store, "a"), [1, 2, 3, 4]);
    assert_eq!(versions(&*store, "long"), [1, 2, 3, 4, 5], "no gap");
}

#[test]
fn a_store_that_hangs_does_not_hang_the_tasks() {
    let store = Faulty::new();
    let barrier = Arc::new(Barrier::new(2));
    let builder = Controller::builder().store(store.clone()).register(seven());
    let controller = builder.store_patience(Duration::from_millis(20)).build().unwrap();
    *store.hang.lock().unwrap() = Some(Arc::clone(&barrier));
    let run = controller.submit(Submit::new("t").id(id("a"))).unwrap();
    assert!(run.wait(Some(LIMIT)).unwrap().ok());
    assert!(!controller.persist_failures().is_empty());
    barrier.wait();
    assert!(controller.close(CloseMode::Wait, LIMIT, false).is_clean());
    assert_eq!(versions(&*store, "a"), [1, 2, 3, 4]);
}

#[test]
fn an_id_that_is_taken_is_refused_by_a_store_that_hangs_and_can_be_read() {
    let store = Faulty::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let controller = || {
        let runs = Arc::clone(&runs);
        let count = move |_: &TaskContext, ()| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok::<_, TaskError>(())
        };
        let builder = Controller::builder().store(store.clone());
        let builder = builder.store_patience(Duration::from_secs(2));
        builder.register(TaskDefinition::new("count", count)).build().unwrap()
    };
    let first = controller().submit(Submit::new("count").id(id("a"))).unwrap();
    assert!(first.wait(Some(LIMIT)).unwrap().ok());
    let second = controller();
    let barrier = Arc::new(Barrier::new(2));
    *store.hang.lock().unwrap() = Some(Arc::clone(&barrier));
    let mut submitted = thread::scope(|scope| {
        let submits = [
            Submit::new("count").id(id("a")),
            Submit::new("count").id(id("b")),
            Submit::new("nobody knows it"),
        ];
        let submitted = scope.spawn(|| second.submit_many(submits));
        // The store counts as down.
        while second.persist_failures().is_empty() {
            thread::yield_now();
        }
        barrier.wait();
        submitted.join().unwrap()
    });
    assert!(matches!(submitted.pop(), Some(Err(SubmitError::UnknownTask { .. }))));
    let free = submitted.pop().unwrap();
    assert!(matches!(submitted.pop(), Some(Err(SubmitError::Exists { .. }))));
    assert!(free.unwrap().wait(Some(LIMIT)).unwrap().ok());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert!(second.desynced_tasks().is_empty());
    assert_eq!(versions(&*store, "a"), [1, 2, 3, 4]);
}

#[test]
fn a_write_whose_answer_was_lost_is_recognised_as_our_own() {
    let store = Faulty::new();
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).register(definition);
    let controller = builder.build().unwrap();
    store.loses_answer.store(true, Ordering::SeqCst);
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    store.loses_answer.store(true, Ordering::SeqCst);
    run.stop(None).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Stopped);
    while store.loses_answer.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    assert!(controller.close(CloseMode::Wait, LIMIT, false).is_clean());
    assert!(controller.desynced_tasks().is_empty(), "nobody else wrote it");
    assert_eq!(store.get(&id("a")).unwrap().unwrap().status(), Status::Stopped);
    assert_eq!(versions(&*store, "a"), [1, 2, 3, 4, 5]);
}

#[test]
fn an_end_that_could_not_be_written_gives_way_to_what_the_store_says() {
    let store = Faulty::new();
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_micros(0)));
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).clock(clock.clone());
    let controller = builder.register(definition).build().unwrap();
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    while store.get(&id("a")).unwrap().unwrap().status() != Status::Running {
        thread::yield_now();
    }
    store.fails.store(true, Ordering::SeqCst);
    run.stop(None).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Stopped, "as far as we know");
    store.fails.store(false, Ordering::SeqCst);
    store.retire(controller.incarnation(), Now::Store).unwrap();
    reconcile(&*store, controller.ownership(), false, None, &*clock).unwrap();
    assert_eq!(store.get(&id("a")).unwrap().unwrap().status(), Status::Lost);
    controller.close(CloseMode::Wait, LIMIT, false);
    assert_eq!(controller.desynced_tasks(), [id("a")]);
    assert_eq!(store.get(&id("a")).unwrap().unwrap().status(), Status::Lost);
}

#[test]
fn a_full_buffer_drops_and_says_so() {
    let store = Faulty::new();
    let builder = Controller::builder().store(store.clone()).register(seven()).buffer(10);
    let controller = builder.build().unwrap();
    store.fails.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        assert!(controller.submit(Submit::new("t")).unwrap().wait(Some(LIMIT)).unwrap().ok());
    }
    assert!(controller.persist_failures().iter().any(|fault| fault.dropped));
}

#[test]
fn a_task_that_somebody_else_writes_is_stopped_and_never_overwritten() {
    let store = Arc::new(InMemoryStore::new());
    let (definition, runs) = looping();
    let builder = Controller::builder().store(store.clone()).register(definition);
    let controller = builder.build().unwrap();
    let run = controller.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    assert!(run.pause(LIMIT).unwrap());
    // Somebody declares it lost behind the holder's back.
    let mut stolen = store.get(&id("a")).unwrap().unwrap();
    let (expect_version, at) = (stolen.status_version(), Timestamp::from_micros(0));
    let row = machine::apply(&mut stolen, Status::Lost, Trigger::Vanished, at, None).unwrap();
    let transitions = vec![row];
    let entry =
        Entry::Save { snapshot: stolen.into(), expect_version, transitions, if_expired: None };
    assert_eq!(store.write(&[entry]).unwrap(), [Ok(())]);
    run.resume().unwrap();
    let outcome = run.wait(Some(LIMIT)).unwrap();
    assert_eq!(outcome.status(), Status::Lost, "the store's word is told");
    assert_eq!(controller.desynced_tasks(), [id("a")]);
    assert_eq!(store.history(&id("a"), 0, 100).unwrap().last().unwrap().to, Status::Lost);
}

/// Two controllers on a store that fails on demand; the first left a task waiting, and is not heard of.
fn left_waiting(store: &Arc<Faulty>) -> (Controller, Controller, Receiver<u32>) {
    let make = || {
        let (definition, runs) = looping();
        let builder = Controller::builder().store(store.clone()).max_parallel(1);
        (builder.register(definition).build().unwrap(), runs)
    };
    let (first, runs) = make();
    first.submit(Submit::new("loop").id(id("runs"))).unwrap();
    runs.recv().unwrap();
    first.submit(Submit::new("loop").id(id("waits"))).unwrap();
    let (second, runs) = make();
    store.retire(first.incarnation(), Now::Store).unwrap();
    (first, second, runs)
}

#[test]
fn nothing_is_taken_over_on_a_store_that_cannot_write_it_down() {
    let store = Faulty::new();
    let (_first, second, runs) = left_waiting(&store);
    store.fails.store(true, Ordering::SeqCst);
    let refused = second.submit(Submit::new("loop").id(id("waits"))).err().unwrap();
    assert!(matches!(refused, SubmitError::Store(_)), "{refused}");
    store.fails.store(false, Ordering::SeqCst);
    let untouched = store.get(&id("waits")).unwrap().unwrap();
    assert_eq!((untouched.status(), untouched.status_version()), (Status::Queued, 1));
    second.submit(Submit::new("loop").id(id("waits"))).unwrap();
    assert_eq!(runs.recv().unwrap(), 1, "it runs once, by the second submission");
    assert!(runs.try_recv().is_err());
}

#[test]
fn a_take_over_whose_answer_was_lost_counts() {
    let store = Faulty::new();
    let (_first, second, runs) = left_waiting(&store);
    store.loses_answer.store(true, Ordering::SeqCst);
    second.submit(Submit::new("loop").id(id("waits"))).unwrap();
    runs.recv().unwrap();
    assert!(second.desynced_tasks().is_empty());
}

#[test]
fn a_submission_takes_over_what_a_dead_holder_left_waiting() {
    let store: Arc<dyn TaskStore> = Arc::new(InMemoryStore::new());
    let make = || {
        let (definition, runs) = looping();
        let builder = Controller::builder().store(Arc::clone(&store)).max_parallel(1);
        (builder.register(definition).register(seven()).build().unwrap(), runs)
    };
    let (first, runs) = make();
    first.submit(Submit::new("loop").id(id("runs"))).unwrap();
    runs.recv().unwrap();
    first.submit(Submit::new("loop").id(id("waits"))).unwrap();
    let (second, second_runs) = make();
    let take = |name: &'static str, task: &str| second.submit(Submit::new(name).id(id(task)));
    let refused = |name, task| matches!(take(name, task), Err(SubmitError::Exists { .. }));
    assert!(refused("loop", "waits"), "its holder lives");
    // What it has to say by now is written, so that it does not come between.
    while store.get(&id("runs")).unwrap().unwrap().status() != Status::Running {
        thread::yield_now();
    }
    // As after a crash: the lease is over, and the holder is not heard of for a while.
    store.retire(first.incarnation(), Now::Store).unwrap();
    assert!(refused("t", "waits"), "another name");
    assert!(refused("loop", "runs"), "work was in flight");
    let run = take("loop", "waits").unwrap();
    second_runs.recv().unwrap();
    assert_eq!(words(&second, &id("waits"))[1], "queued recovery:adopted");
    let taken = store.get(&id("waits")).unwrap().unwrap();
    assert_eq!(taken.supervisor.as_ref(), Some(second.incarnation()));
    let found = second.reconcile(false, Some("it died")).unwrap();
    assert_eq!(found.len(), 1);
    let lost = store.get(&id("runs")).unwrap().unwrap();
    assert_eq!(lost.status(), Status::Lost);
    assert_eq!(words(&second, &id("runs")).last().unwrap(), "lost recovery:lease_expired");
    run.stop(None).unwrap();
    run.wait(Some(LIMIT)).unwrap();
}
