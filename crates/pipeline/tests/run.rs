//! Runs on a controller with threads.
#![expect(clippy::unwrap_used, reason = "helpers outside of test functions")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chongming_core::{
    CloseMode, Controller, FailureKind, RetryPolicy, Status, TaskContext, TaskDefinition,
    TaskError, TaskId, Value,
};
use chongming_pipeline::{
    Aggregation, Join, Mistake, Node, Pipeline, PipelineOutcome, PipelineRun, PipelineStatus,
    StartError,
};

/// Longer than anything here takes; only a hanging test meets it.
const LIMIT: Duration = Duration::from_secs(60);

/// Tasks that succeed, fail, and hold on until they are let go or stopped.
struct World {
    controller: Controller,
    go: Sender<()>,
    held: Receiver<TaskId>,
}

fn world(max_parallel: usize) -> World {
    let (go, gone) = channel::<()>();
    let (hold, held) = channel();
    let (gone, hold) = (Mutex::new(gone), Mutex::new(hold));
    let wait = move |ctx: &TaskContext, (): ()| -> Result<String, TaskError> {
        hold.lock().unwrap().send(ctx.task_id().clone()).unwrap();
        loop {
            ctx.sleep(Duration::from_millis(1))?;
            if gone.lock().unwrap().try_recv().is_ok() {
                return Ok("held".to_owned());
            }
        }
    };
    let seen = |ctx: &TaskContext, (): ()| {
        let names = ctx.upstream().keys().map(|name| name.to_string());
        Ok::<_, TaskError>(names.collect::<Vec<_>>())
    };
    let controller = Controller::builder()
        .max_parallel(max_parallel)
        .register(TaskDefinition::new("ok", |_: &TaskContext, n: Option<i64>| {
            Ok::<_, TaskError>(n)
        }))
        .register(TaskDefinition::new("bad", |_: &TaskContext, (): ()| {
            Err::<(), _>(TaskError::permanent("bad"))
        }))
        .register(TaskDefinition::new("seen", seen))
        .register(TaskDefinition::new("hold", wait))
        .build()
        .unwrap();
    World { controller, go, held }
}

fn statuses(outcome: &PipelineOutcome) -> Vec<(&str, Status)> {
    outcome.nodes.iter().map(|node| (&*node.node, node.outcome.status())).collect()
}

fn end(run: &PipelineRun) -> Arc<PipelineOutcome> {
    run.wait(Some(LIMIT)).unwrap()
}

#[test]
fn waiting_nodes_are_blocked_tasks_from_the_start_and_hold_no_slot() {
    let world = world(1);
    let pipeline = Pipeline::new("nightly")
        .bucket_key("tenant-A")
        .node(Node::new("b", "ok").args(Some(2i64)).after("a").bucket_key("tenant-B"))
        .node(Node::new("a", "hold"));
    let run = pipeline.start_as(&world.controller, &TaskId::new("r").unwrap()).unwrap();
    assert_eq!(world.held.recv_timeout(LIMIT).unwrap().as_str(), "r:a");
    let blocked = world.controller.get(&TaskId::new("r:b").unwrap()).unwrap().unwrap();
    assert_eq!((blocked.status(), blocked.label.as_deref()), (Status::Blocked, Some("nightly/b")));
    assert_eq!(blocked.bucket, Some(28));
    assert_eq!(run.node("a").unwrap().snapshot().unwrap().bucket, Some(7));
    let why = world.controller.explain(run.node("b").unwrap().id()).unwrap().to_string();
    assert_eq!(why, "waits for its upstream: r:a");
    assert!(run.outcome().is_none() && run.wait(Some(Duration::ZERO)).is_err());
    world.go.send(()).unwrap();
    let outcome = end(&run);
    assert_eq!(statuses(&outcome), [("b", Status::Succeeded), ("a", Status::Succeeded)]);
    assert_eq!((outcome.status, &*outcome.run_id), (PipelineStatus::Succeeded, "r"));
    let (tell, told) = channel();
    run.notify(&tell, "ended");
    assert_eq!(told.try_recv(), Ok("ended"));
    run.cancel(None);
}

#[test]
fn the_slot_of_a_node_that_failed_goes_to_none_that_its_failure_withdraws() {
    let world = world(1);
    let run = Pipeline::new("p")
        .node(Node::new("held", "hold").priority(1))
        .node(Node::new("a", "ok"))
        .node(Node::new("b", "ok"))
        .node(Node::new("last", "ok").after("held").join(Join::AllSettled))
        .start(&world.controller)
        .unwrap();
    world.held.recv_timeout(LIMIT).unwrap();
    run.node("held").unwrap().stop(None).unwrap();
    let outcome = end(&run);
    let (waited, ended) = (Status::Cancelled, Status::Succeeded);
    assert_eq!(
        statuses(&outcome),
        [("held", Status::Stopped), ("a", waited), ("b", waited), ("last", ended)]
    );
    for node in ["a", "b"] {
        assert_eq!(outcome.node(node).unwrap().outcome.snapshot.attempt, 0, "never started");
    }
}

#[test]
fn only_succeeded_direct_upstream_nodes_are_seen() {
    let world = world(4);
    let outcome = Pipeline::new("p")
        .aggregation(Aggregation::AllSettled)
        .node(Node::new("far", "ok"))
        .node(Node::new("good", "ok").after("far"))
        .node(Node::new("bad", "bad"))
        .node(Node::new("skipped", "ok").after("bad"))
        .node(
            Node::new("last", "seen").depends_on(["good", "bad", "skipped"]).join(Join::AllSettled),
        )
        .start(&world.controller);
    let outcome = end(&outcome.unwrap());
    let good = Value::List(vec![Value::String("good".into())]);
    assert_eq!(*outcome.node("last").unwrap().outcome.value(), good);
    assert_eq!(outcome.status, PipelineStatus::Failed);
    let skipped = outcome.node("skipped").unwrap();
    let trail = world.controller.history(&skipped.outcome.snapshot.id).unwrap();
    assert_eq!(trail.last().unwrap().reason.as_deref(), Some("upstream node \"bad\" failed"));
}

#[test]
fn arguments_can_be_made_of_results() {
    let world = world(2);
    let double = |inputs: &std::collections::BTreeMap<chongming_core::Text, Value>| match inputs
        .get("one")
    {
        Some(Value::Int(n)) => Ok(Value::Int(2 * n)),
        Some(_) | None => Err("node \"one\" gave no number".into()),
    };
    let run = Pipeline::new("p")
        .aggregation(Aggregation::AllSettled)
        .node(Node::new("one", "ok").args(Some(21i64)))
        .node(Node::new("none", "ok"))
        .node(Node::new("two", "ok").after("one").args_from(double))
        .node(
            Node::new("bad", "ok").after("none").args_from(double).retry(RetryPolicy::attempts(3)),
        )
        .node(Node::new("nan", "ok").after("one").args_from(|_| Ok(Value::Float(f64::NAN))))
        .node(Node::new("panic", "ok").after("one").args_from(|_| panic!("of the user's")))
        .start(&world.controller)
        .unwrap();
    let outcome = end(&run);
    assert_eq!(*outcome.node("two").unwrap().outcome.value(), Value::Int(42));
    for (node, word) in [("bad", "no number"), ("nan", "JSON"), ("panic", "panicked")] {
        let failed = &outcome.node(node).unwrap().outcome;
        let failure = failed.failure().unwrap();
        assert_eq!((failure.kind, failed.snapshot.attempt), (FailureKind::LaunchFailed, 1));
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[test]
fn a_stopped_node_fails_fast_and_a_cancelled_one_does_not() {
    for (stop, status, other) in [
        (true, PipelineStatus::Failed, Status::Cancelled),
        (false, PipelineStatus::Cancelled, Status::Succeeded),
    ] {
        let world = world(2);
        let run = Pipeline::new("p")
            .node(Node::new("a", "hold"))
            .node(Node::new("b", "hold"))
            .node(Node::new("after", "ok").after("a"))
            .start(&world.controller)
            .unwrap();
        world.held.recv_timeout(LIMIT).unwrap();
        world.held.recv_timeout(LIMIT).unwrap();
        let a = run.node("a").unwrap();
        if stop {
            a.stop(None).unwrap();
        } else {
            assert!(a.cancel(None));
            a.wait(Some(LIMIT)).unwrap();
            world.go.send(()).unwrap();
        }
        let outcome = end(&run);
        assert_eq!(outcome.status, status);
        assert_eq!(outcome.node("b").unwrap().outcome.status(), other);
        assert_eq!(outcome.node("after").unwrap().outcome.status(), Status::Skipped);
    }
}

#[test]
fn cancelling_a_run_cancels_every_unfinished_node_clean_ups_included() {
    let world = world(2);
    let run = Pipeline::new("p")
        .node(Node::new("done", "ok"))
        .node(Node::new("running", "hold").after("done"))
        .node(Node::new("waiting", "ok").after("running"))
        .node(Node::new("clean-up", "ok").after("running").join(Join::AllSettled))
        .start(&world.controller)
        .unwrap();
    world.held.recv_timeout(LIMIT).unwrap();
    run.cancel(Some("wrong day"));
    let outcome = end(&run);
    assert_eq!(
        statuses(&outcome),
        [
            ("done", Status::Succeeded),
            ("running", Status::Cancelled),
            ("waiting", Status::Cancelled),
            ("clean-up", Status::Cancelled)
        ]
    );
    assert_eq!(outcome.status, PipelineStatus::Cancelled);
    let trail = run.node("clean-up").unwrap().transitions().unwrap();
    let last = trail.last().unwrap();
    assert_eq!((last.trigger.as_str(), last.reason.as_deref()), ("user:cancel", Some("wrong day")));
}

#[test]
fn mistakes_are_all_told_and_nothing_is_submitted() {
    let world = world(1);
    let wrong = Pipeline::new("p")
        .node(Node::new("a", "okk").after("b"))
        .node(Node::new("b", "ok").after("a"))
        .node(Node::new("c", "ok").args(f64::NAN).bucket_key("nul\0"));
    let Err(StartError::Invalid(error)) = wrong.start(&world.controller) else { panic!("started") };
    let text = error.to_string();
    for word in ["a → b → a", "okk", "NUL"] {
        assert!(text.contains(word), "{text} lacks {word}");
    }
    assert!(error.mistakes.iter().any(|mistake| matches!(mistake, Mistake::Cycle(_))));
    assert_eq!(world.controller.stats().unwrap().total, 0);
}

#[test]
fn a_run_id_that_exists_is_refused_before_anything_runs() {
    let world = world(1);
    let pipeline =
        Pipeline::new("p").node(Node::new("a", "ok")).node(Node::new("b", "ok").after("a"));
    let run = TaskId::new("r").unwrap();
    end(&pipeline.start_as(&world.controller, &run).unwrap());
    // Of one that starts at once and of one that waits.
    let with_root = pipeline.node(Node::new("new", "hold"));
    let with_waiting =
        Pipeline::new("p").node(Node::new("new", "hold")).node(Node::new("b", "ok").after("new"));
    for (grown, taken) in [(with_root, "a"), (with_waiting, "b")] {
        let Err(StartError::Submit { node, error }) = grown.start_as(&world.controller, &run)
        else {
            panic!("started")
        };
        assert_eq!(&*node, taken);
        assert!(error.to_string().contains(&format!("r:{taken}")), "{error}");
        assert!(world.controller.get(&TaskId::new("r:new").unwrap()).unwrap().is_none());
    }
}

#[test]
fn a_controller_that_closes_lets_a_run_end_or_stops_all_of_it() {
    for (mode, status) in [(CloseMode::Wait, Status::Succeeded), (CloseMode::Stop, Status::Stopped)]
    {
        let world = world(1);
        let run = Pipeline::new("p")
            .node(Node::new("a", "hold"))
            .node(Node::new("b", "ok").after("a").join(Join::AllSettled))
            .start(&world.controller)
            .unwrap();
        world.held.recv_timeout(LIMIT).unwrap();
        if mode == CloseMode::Wait {
            world.go.send(()).unwrap();
        }
        assert!(world.controller.close(mode, LIMIT, false).is_clean());
        let outcome = end(&run);
        assert_eq!(statuses(&outcome), [("a", status), ("b", status)], "{mode:?}");
    }
}

#[test]
fn thousands_of_nodes_deep_and_wide() {
    let world = world(8);
    let deep = (1..2_000).fold(Pipeline::new("deep").node(Node::new("0", "ok")), |deep, n| {
        deep.node(Node::new(n.to_string(), "ok").after((n - 1).to_string()))
    });
    let wide = (0..2_000).fold(Pipeline::new("wide"), |wide, n| {
        wide.node(Node::new(n.to_string(), "ok").args(Some(n)))
    });
    let wide = wide.node(Node::new("all", "seen").depends_on((0..2_000).map(|n| n.to_string())));
    for pipeline in [deep, wide] {
        let outcome = end(&pipeline.start(&world.controller).unwrap());
        assert!(outcome.ok());
    }
}
