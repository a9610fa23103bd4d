//! What an orchestration can do to blocked tasks, and how it learns of ends.
#![expect(clippy::unwrap_used, reason = "helpers outside of test functions")]

mod support;

use std::sync::Arc;
use std::sync::mpsc::channel;

use chongming_core::store::{Now, TaskStore};
use chongming_core::{
    Controller, FailureKind, InMemoryStore, Release, Status, Submit, SubmitError, TaskContext,
    TaskDefinition, TaskError, Value,
};
use support::{LIMIT, id, looping, words};

fn sum() -> TaskDefinition {
    TaskDefinition::new("sum", |ctx: &TaskContext, n: i64| {
        Ok::<_, TaskError>(n + ctx.input_or::<i64>("up", 0)?)
    })
}

fn controller() -> Controller {
    Controller::builder().max_parallel(1).register(sum()).build().unwrap()
}

#[test]
fn a_blocked_task_runs_when_released_with_what_it_is_given() {
    let controller = controller();
    let run = controller.submit(Submit::new("sum").args(1i64).id(id("a")).blocked([])).unwrap();
    assert_eq!(run.snapshot().unwrap().status(), Status::Blocked);
    // It holds no slot.
    let other = controller.submit(Submit::new("sum").args(1i64)).unwrap();
    assert!(other.wait(Some(LIMIT)).unwrap().ok());

    let upstream = Arc::new([("up".into(), Value::Int(40))].into());
    assert!(run.release(Release::new(upstream).args(Ok(Value::Int(2)))));
    assert_eq!(run.wait(Some(LIMIT)).unwrap().value(), &Value::Int(42));
    assert!(!run.release(Release::default()) && !run.skip("late") && !run.fail_fast("late"));
    assert_eq!(
        words(&controller, run.id())[..2],
        ["blocked orchestrator:waiting_for_upstream", "queued orchestrator:dependencies_resolved"]
    );
}

#[test]
fn arguments_that_cannot_be_made_fail_the_launch() {
    let controller = controller();
    let run = controller.submit(Submit::new("sum").blocked([])).unwrap();
    assert!(run.release(Release::default().args(Err("no numbers".into()))));
    let outcome = run.wait(Some(LIMIT)).unwrap();
    let failure = outcome.failure().unwrap();
    assert_eq!((outcome.status(), failure.kind), (Status::Failed, FailureKind::LaunchFailed));
    assert_eq!((&*failure.message, failure.retryable), ("no numbers", false));
    // Its slot is free again.
    assert!(
        controller.submit(Submit::new("sum").args(1i64)).unwrap().wait(Some(LIMIT)).unwrap().ok()
    );
}

#[test]
fn blocked_tasks_can_be_skipped_withdrawn_and_cancelled() {
    let controller = controller();
    let blocked = || controller.submit(Submit::new("sum").blocked([])).unwrap();
    let (skipped, withdrawn, cancelled) = (blocked(), blocked(), blocked());
    assert!(skipped.skip("up failed") && withdrawn.fail_fast("up failed"));
    assert!(cancelled.cancel(Some("by me")));
    for (run, status, trigger) in [
        (&skipped, Status::Skipped, "orchestrator:upstream_unsatisfied"),
        (&withdrawn, Status::Cancelled, "orchestrator:fail_fast"),
        (&cancelled, Status::Cancelled, "user:cancel"),
    ] {
        assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), status);
        let last = run.transitions().unwrap().pop().unwrap();
        assert_eq!(last.trigger.as_str(), trigger);
        assert!(last.reason.is_some());
    }
}

#[test]
fn a_running_task_is_stopped_by_a_fail_fast_and_ends_cancelled() {
    let (looping, runs) = looping();
    let controller = Controller::builder().register(looping).build().unwrap();
    let run = controller.submit(Submit::new("loop")).unwrap();
    runs.recv_timeout(LIMIT).unwrap();
    assert!(run.fail_fast("another failed"));
    assert_eq!(run.wait(Some(LIMIT)).unwrap().status(), Status::Cancelled);
}

#[test]
fn ends_are_told_once_before_or_after_they_were_asked_for() {
    let controller = controller();
    let (ends, ended) = channel();
    let first = controller.submit(Submit::new("sum").args(1i64).blocked([])).unwrap();
    first.notify(&ends, "early");
    assert!(ended.try_recv().is_err());
    first.release(Release::default());
    assert_eq!(ended.recv_timeout(LIMIT), Ok("early"));
    assert!(first.outcome().is_some());
    first.notify(&ends, "late");
    assert_eq!(ended.try_recv(), Ok("late"));
    drop(ends);
    assert!(ended.recv().is_err());
}

#[test]
fn a_blocked_task_names_the_upstream_tasks_that_have_not_ended() {
    let controller = controller();
    let up = controller.submit(Submit::new("sum").args(1i64).id(id("u1")).blocked([])).unwrap();
    let waits_for = [id("u1"), id("u0")];
    controller.submit(Submit::new("sum").id(id("d")).blocked(waits_for)).unwrap();
    let explained = || controller.explain(&id("d")).unwrap().to_string();
    assert_eq!(explained(), "waits for its upstream: u1");
    up.skip("no more");
    up.wait(Some(LIMIT)).unwrap();
    assert_eq!(explained(), "waits for its upstream");
}

#[test]
fn a_submission_for_a_new_task_takes_none_over() {
    let store = Arc::new(InMemoryStore::new());
    let build = || {
        let builder = Controller::builder().store(Arc::clone(&store) as Arc<dyn TaskStore>);
        builder.register(sum()).build().unwrap()
    };
    let former = build();
    former.submit(Submit::new("sum").id(id("a")).blocked([])).unwrap();
    store.retire(former.incarnation(), Now::Store).unwrap();
    let next = build();
    for submit in [Submit::new("sum").only_new(), Submit::new("sum").blocked([])] {
        let refused = next.submit(submit.id(id("a"))).err().unwrap();
        assert!(matches!(refused, SubmitError::Exists { .. }), "{refused}");
    }
    assert!(next.submit(Submit::new("sum").args(1i64).id(id("a"))).is_ok());
}

#[test]
fn a_submission_can_be_checked_without_making_it() {
    let controller = controller();
    assert!(controller.validate(&Submit::new("sum")).is_ok());
    let unknown = controller.validate(&Submit::new("smu"));
    assert!(matches!(unknown, Err(SubmitError::UnknownTask { .. })));
    assert_eq!(controller.stats().unwrap().total, 0);
}
