//! The controller from outside, on the in-memory store: a task's life and its control.

mod support;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chongming_core::store::{Now, TaskStore};
use chongming_core::{
    Alert, Backoff, CloseMode, ControlError, ControlRefusal, Controller, FailureKind,
    InMemoryStore, InlineExecutor, RetryPolicy, Status, Submit, SubmitError, TaskContext,
    TaskDefinition, TaskError, Timeout, Value,
};
use support::{LIMIT, id, looping, words};

#[test]
fn a_task_leaves_its_whole_trail() {
    let body = |_: &TaskContext, n: i64| Ok::<_, TaskError>(n + 1);
    let controller =
        Controller::builder().register(TaskDefinition::new("t", body).tag("io")).build().unwrap();
    let submit = Submit::new("t").args(1i64).id(id("a")).label("first").bucket_key("tenant-A");
    let run = controller.submit(submit).unwrap();
    let outcome = run.wait(Some(LIMIT)).unwrap();
    assert!(outcome.ok());
    assert_eq!(outcome.value(), &Value::Int(2));
    let stored = controller.get(&id("a")).unwrap().unwrap();
    assert_eq!((stored.status(), stored.status_version()), (Status::Succeeded, 4));
    assert_eq!((stored.bucket, stored.attempt, stored.tags.len()), (Some(7), 1, 1));
    assert_eq!(
        words(&controller, run.id()),
        [
            "queued orchestrator:dependencies_resolved",
            "starting scheduler:dispatch",
            "running executor:launched",
            "succeeded executor:completed"
        ]
    );
}

#[test]
fn bad_submissions_say_what_does_not_fit() {
    let controller = Controller::builder()
        .register(TaskDefinition::new("sync", |_: &TaskContext, ()| Ok::<_, TaskError>(())))
        .build()
        .unwrap();
    let unknown = controller.submit(Submit::new("snyc")).err().unwrap().to_string();
    assert_eq!(unknown, "there is no task named \"snyc\"; registered are \"sync\"");
    let nan = controller.submit(Submit::new("sync").args(f64::NAN));
    assert!(matches!(nan, Err(SubmitError::Args(_))));
    let nul = controller.submit(Submit::new("sync").label("a\0"));
    assert!(matches!(nul, Err(SubmitError::Text(_))));
    controller.submit(Submit::new("sync").id(id("a"))).unwrap().wait(Some(LIMIT)).unwrap();
    let again = controller.submit(Submit::new("sync").id(id("a"))).err().unwrap().to_string();
    assert!(again.contains("\"a\"") && again.contains("succeeded"), "{again}");
    controller.close(CloseMode::Stop, LIMIT, false);
    assert!(matches!(controller.submit(Submit::new("sync")), Err(SubmitError::Closed)));
}

#[test]
fn retries_until_it_succeeds_or_the_attempts_are_used_up() {
    let flaky = |ctx: &TaskContext, good: u32| -> Result<(), TaskError> {
        if ctx.attempt() < good { Err(TaskError::new("not yet")) } else { Ok(()) }
    };
    let retry = RetryPolicy::attempts(3).with_backoff(Backoff::Fixed(Duration::from_millis(1)));
    let definition = TaskDefinition::new("flaky", flaky).retry(retry);
    let controller = Controller::builder().register(definition).build().unwrap();
    let run = |good: u32| {
        controller.submit(Submit::new("flaky").args(good)).unwrap().wait(Some(LIMIT)).unwrap()
    };
    let good = run(3);
    assert!(good.ok() && good.failure().is_none());
    assert_eq!(good.snapshot.attempt, 3);
    let bad = run(9);
    assert_eq!((bad.status(), bad.snapshot.attempt), (Status::Failed, 3));
    assert_eq!(bad.failure().unwrap().kind, FailureKind::Exception);
}

#[test]
fn a_panic_and_a_bad_result_are_failures_and_free_the_slot() {
    let panic = |_: &TaskContext, ()| -> Result<(), TaskError> { panic!("boom") };
    let nan = |_: &TaskContext, ()| Ok::<_, TaskError>(f64::NAN);
    let controller = Controller::builder()
        .max_parallel(1)
        .register(TaskDefinition::new("panic", panic))
        .register(TaskDefinition::new("nan", nan).retry(RetryPolicy::attempts(5)))
        .build()
        .unwrap();
    let kind = |name: &str| {
        let outcome = controller.submit(Submit::new(name)).unwrap().wait(Some(LIMIT)).unwrap();
        (outcome.status(), outcome.failure().unwrap().kind, outcome.snapshot.attempt)
    };
    assert_eq!(kind("panic"), (Status::Failed, FailureKind::Panic, 1));
    assert_eq!(kind("nan"), (Status::Failed, FailureKind::ResultInvalid, 1));
}

#[test]
fn pause_and_resume_any_number_of_times_then_stop() {
    let (definition, runs) = looping();
    let controller = Controller::builder().register(definition).build().unwrap();
    let run = controller.submit(Submit::new("loop")).unwrap();
    runs.recv().unwrap();
    for _ in 0..3 {
        assert!(run.pause(LIMIT).unwrap());
        assert!(run.pause(LIMIT).unwrap(), "pausing what is paused is accepted");
        assert_eq!(run.snapshot().unwrap().status(), Status::Paused);
        run.resume().unwrap();
    }
    run.stop(Some("enough")).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Stopped);
    let rows = run.transitions().unwrap();
    assert_eq!(rows.iter().filter(|row| row.to == Status::Paused).count(), 3);
    assert_eq!(rows.iter().rev().nth(1).unwrap().reason.as_deref(), Some("enough"));
    let refused = run.stop(None);
    assert!(matches!(refused, Err(ControlError::Refused(ControlRefusal::Ended(Status::Stopped)))));
}

#[test]
fn a_body_that_never_looks_cannot_pause_and_is_lost_when_stopped() {
    let (release, held) = channel::<()>();
    let (say, runs) = channel();
    let (held, say) = (Mutex::new(held), Mutex::new(say));
    let deaf = move |_: &TaskContext, ()| {
        say.lock().unwrap().send(()).unwrap();
        // Ends when the test lets it go.
        let _ = held.lock().unwrap().recv();
        Ok::<_, TaskError>(())
    };
    let controller = Controller::builder()
        .max_parallel(1)
        .grace(Duration::from_millis(5))
        .register(TaskDefinition::new("deaf", deaf))
        .register(TaskDefinition::new("next", |_: &TaskContext, ()| Ok::<_, TaskError>(())))
        .build()
        .unwrap();
    let run = controller.submit(Submit::new("deaf")).unwrap();
    runs.recv().unwrap();
    assert!(!run.pause(Duration::from_millis(5)).unwrap());
    assert_eq!(run.snapshot().unwrap().status(), Status::Running);
    run.stop(None).unwrap();
    let outcome = run.wait(Some(LIMIT)).unwrap();
    assert_eq!(outcome.status(), Status::Lost);
    assert_eq!(outcome.failure().unwrap().kind, FailureKind::Lost);
    let next = controller.submit(Submit::new("next")).unwrap().wait(Some(LIMIT)).unwrap();
    assert!(next.ok(), "a lost task frees its slot");
    drop(release);
}

#[test]
fn timeouts_stop_the_body_before_they_count() {
    let (definition, _runs) = looping();
    let controller = Controller::builder().register(definition).build().unwrap();
    let limit = Some(Duration::from_millis(20));
    let timeout = Timeout { per_attempt: limit, ..Timeout::default() };
    let run = controller.submit(Submit::new("loop").timeout(timeout)).unwrap();
    let outcome = run.wait(Some(LIMIT)).unwrap();
    assert_eq!(outcome.failure().unwrap().kind, FailureKind::TimeoutAttempt);
    assert!(outcome.failure().unwrap().retryable);
    let last: Vec<_> = words(&controller, run.id()).split_off(3);
    assert_eq!(last, ["stopping runtime:timeout_attempt", "failed runtime:timeout_confirmed"]);
}

#[test]
fn a_start_timeout_hits_what_waits_too_long() {
    let (definition, runs) = looping();
    let controller = Controller::builder().max_parallel(1).register(definition).build().unwrap();
    let first = controller.submit(Submit::new("loop")).unwrap();
    runs.recv().unwrap();
    let timeout = Timeout { start: Some(Duration::from_millis(5)), ..Timeout::default() };
    let second = controller.submit(Submit::new("loop").timeout(timeout)).unwrap();
    let outcome = second.wait(Some(LIMIT)).unwrap();
    assert_eq!(outcome.failure().unwrap().kind, FailureKind::TimeoutStart);
    assert_eq!((outcome.status(), outcome.snapshot.attempt), (Status::Failed, 0));
    first.stop(None).unwrap();
    first.wait(Some(LIMIT)).unwrap();
}

#[test]
fn async_bodies_pause_and_stop_too() {
    async fn go_on(ctx: TaskContext, say: Sender<()>) -> Result<(), TaskError> {
        say.send(())?;
        loop {
            ctx.checkpoint_async().await?;
            std::thread::yield_now();
        }
    }
    let (say, runs) = channel();
    let body = move |ctx: TaskContext, ()| go_on(ctx, say.clone());
    let controller =
        Controller::builder().register(TaskDefinition::new_async("async", body)).build().unwrap();
    let run = controller.submit(Submit::new("async")).unwrap();
    runs.recv().unwrap();
    assert!(run.pause(LIMIT).unwrap());
    run.resume().unwrap();
    run.stop(None).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Stopped);
}

#[test]
fn the_inline_executor_runs_one_after_the_other_by_priority() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let body = move |ctx: &TaskContext, ()| {
        seen.lock().unwrap().push(ctx.task_id().to_string());
        Ok::<_, TaskError>(())
    };
    let controller = Controller::builder()
        .executor(Arc::new(InlineExecutor))
        .max_parallel(1)
        .register(TaskDefinition::new("t", body))
        .build()
        .unwrap();
    let submits = (0..5).map(|i| Submit::new("t").id(id(&format!("t{i}"))).priority(i));
    assert!(controller.submit_many(submits).iter().all(Result::is_ok));
    controller.wait_all(Some(LIMIT)).unwrap();
    assert_eq!(*order.lock().unwrap(), ["t4", "t3", "t2", "t1", "t0"]);
}

#[test]
fn another_controller_on_the_same_store_sees_and_controls() {
    let store: Arc<dyn TaskStore> = Arc::new(InMemoryStore::new());
    let (definition, runs) = looping();
    let holder =
        Controller::builder().store(Arc::clone(&store)).register(definition).build().unwrap();
    let other = Controller::builder().store(store).build().unwrap();
    let run = holder.submit(Submit::new("loop").id(id("a"))).unwrap();
    runs.recv().unwrap();
    assert!(other.pause(&id("a"), None, Some("look")).unwrap());
    assert_eq!(other.get(&id("a")).unwrap().unwrap().status(), Status::Paused);
    other.resume(&id("a"), None).unwrap();
    other.stop(&id("a"), Some("release window")).unwrap();
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Stopped);
    let rows = holder.history(&id("a")).unwrap();
    let stopping = rows.iter().find(|row| row.to == Status::Stopping).unwrap();
    assert_eq!(stopping.reason.as_deref(), Some("release window"));
    let ended = other.stop(&id("a"), None);
    assert!(matches!(ended, Err(ControlError::Refused(ControlRefusal::Ended(Status::Stopped)))));
    let unknown = other.stop(&id("nobody"), None);
    assert!(matches!(unknown, Err(ControlError::Refused(ControlRefusal::NotFound))));
}

#[test]
fn a_node_that_starts_into_an_overlap_is_told() {
    let store = Arc::new(InMemoryStore::new());
    let start = |owner: &str, owned: &str| {
        let builder = Controller::builder().store(store.clone()).owner(owner);
        builder.owned_buckets(owned.parse().unwrap()).build().unwrap()
    };
    let first = start("node-a", "0-15");
    assert_eq!(first.alerts().unwrap(), []);
    let second = start("node-b", "7,9,16-63");
    let overlap = Alert::BucketOverlap {
        buckets: "7,9".parse().unwrap(),
        owners: ["node-a".into(), "node-b".into()],
    };
    assert_eq!(second.alerts().unwrap(), std::slice::from_ref(&overlap));
    assert_eq!(first.alerts().unwrap(), [overlap]);
    let other = start("node-c", "20-25");
    let twice = start("node-c", "20-25");
    let kinds = |node: &Controller| -> Vec<&str> {
        node.alerts().unwrap().iter().map(Alert::kind).collect()
    };
    assert_eq!(kinds(&twice), ["bucket-overlap", "owner-twice"]);
    // An end takes its part out of it.
    for node in [&other, &second] {
        node.close(CloseMode::Stop, LIMIT, false);
    }
    assert_eq!(first.alerts().unwrap(), []);
    assert_eq!(twice.alerts().unwrap(), []);
    assert_eq!(other.alerts().unwrap(), [], "it is no node any more");
    // Who declares nothing is a node from its first submission on, and overlaps none.
    let observer = Controller::builder().store(store.clone()).owner("node-c").build().unwrap();
    assert_eq!(observer.alerts().unwrap(), []);
}

#[test]
fn a_close_stops_what_runs_and_what_waits_without_blaming_a_person() {
    let store: Arc<dyn TaskStore> = Arc::new(InMemoryStore::new());
    let (definition, runs) = looping();
    let builder = Controller::builder().store(Arc::clone(&store)).max_parallel(1);
    let controller = builder.register(definition).build().unwrap();
    let submits = (0..3).map(|i| Submit::new("loop").id(id(&format!("t{i}"))));
    assert!(controller.submit_many(submits).iter().all(Result::is_ok));
    runs.recv().unwrap();
    let closed = controller.close(CloseMode::Stop, LIMIT, false);
    assert!(closed.is_clean(), "{closed:?}");
    for task in ["t0", "t1", "t2"] {
        assert_eq!(store.get(&id(task)).unwrap().unwrap().status(), Status::Stopped);
        let rows = store.history(&id(task), 0, 100).unwrap();
        assert!(rows.iter().all(|row| !row.trigger.as_str().starts_with("user:")), "{rows:?}");
    }
    let nodes = store.nodes(Now::Store).unwrap();
    assert!(nodes.len() == 1 && !nodes[0].alive, "the lease is retired");
}

#[test]
fn short_tasks_one_after_the_other_all_end() {
    let body = |_: &TaskContext, ()| Ok::<_, TaskError>(());
    let controller =
        Controller::builder().register(TaskDefinition::new("t", body)).build().unwrap();
    for round in 0..2000 {
        assert!(
            controller
                .submit_many((0..round % 4).map(|_| Submit::new("t")))
                .iter()
                .all(Result::is_ok)
        );
        controller.wait_all(Some(LIMIT)).unwrap();
    }
}
