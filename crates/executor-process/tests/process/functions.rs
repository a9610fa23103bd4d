//! Rust functions in processes of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use chongming_core::{
    AttemptEnd, Executor, FailureKind, Launch, Report, Signal, TaskContext, TaskDefinition,
    TaskError, TaskId, Value,
};
use chongming_executor_process::Command;

use crate::support::{Attempt, Rig, Sink, TEST_PROGRAM, Watched, is_gone, tasks};

fn run(rig: &Rig, name: &str, args: impl Into<Value>) -> Attempt {
    let known = tasks::all().into_iter().find(|task| task.name() == name);
    let unknown = || TaskDefinition::new(name, |_: &TaskContext, ()| Ok::<(), TaskError>(()));
    let reports = Arc::new(Watched::new(Vec::new()));
    let carrier = rig.executor.launch(Launch {
        task_id: TaskId::new("t1").unwrap(),
        name: name.into(),
        attempt: 3,
        target: known.unwrap_or_else(unknown).target().clone(),
        args: args.into(),
        upstream: Arc::new(BTreeMap::from([("fetch".into(), Value::Int(7))])),
        files: Some(rig.files(1)),
        sink: Arc::new(Sink(Arc::clone(&reports))),
    });
    Attempt { carrier, reports }
}

fn progressed(attempt: &Attempt) {
    attempt.reports.wait("progress", |all| {
        all.iter().any(|report| matches!(report, Report::Progress(_))).then_some(())
    });
}

#[test]
fn arguments_and_results_go_there_and_back_whole() {
    let rig = Rig::new();
    let deep = (0..128).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let values = [
        Value::Null,
        Value::UInt(u64::MAX),
        Value::Int(i64::MIN),
        Value::Float(0.1 + 0.2),
        Value::Float(f64::MIN_POSITIVE),
        Value::String("a\0b\u{1}\u{FEFF}漢\n".to_owned()),
        deep,
    ];
    for value in values {
        let attempt = run(&rig, "echo", value.clone());
        assert_eq!(attempt.ended(), AttemptEnd::Completed(value));
        attempt.reports.get(|all| assert_eq!(all.first(), Some(&Report::Launched)));
    }
    assert_eq!(run(&rig, "echo_async", 5).ended(), AttemptEnd::Completed(Value::Int(5)));
}

#[test]
fn it_knows_its_task_and_writes_to_its_log() {
    let rig = Rig::new();
    let AttemptEnd::Completed(Value::Map(about)) = run(&rig, "about", "x").ended() else {
        panic!("a map");
    };
    let artifacts = rig.dir.path().join("task/1");
    for (key, value) in [
        ("id", Value::from("t1")),
        ("name", "about".into()),
        ("attempt", Value::Int(3)),
        ("args", "x".into()),
        ("fetched", Value::Int(7)),
        ("default", Value::Int(5)),
        ("artifacts", artifacts.to_str().unwrap().into()),
        ("upstream", Value::Map(BTreeMap::from([("fetch".to_owned(), Value::Int(7))]))),
    ] {
        assert_eq!(about[key], value, "{key}");
    }
    assert!(artifacts.is_dir());
    let log = std::fs::read_to_string(rig.log()).unwrap();
    for line in ["to stdout\n", "to stderr\n", "[warning] to the log\n"] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn all_lines_of_its_log_arrive_and_progress_is_coalesced() {
    let rig = Rig::new();
    run(&rig, "chatter", 50_000).completed();
    let log = std::fs::read_to_string(rig.log()).unwrap();
    assert_eq!(log.matches("[info] line ").count(), 50_000);
    let attempt = run(&rig, "flood", 1_000_000);
    assert_eq!(attempt.ended(), AttemptEnd::Completed(Value::Int(1_000_000)));
    attempt.reports.get(|all| {
        let progress = all.iter().filter_map(|report| match report {
            Report::Progress(progress) => Some(progress.done),
            _ => None,
        });
        assert!(progress.clone().count() < 10_000);
        assert_eq!({ progress }.next_back(), Some(999_999.0));
    });
}

#[test]
fn failures_keep_their_kind() {
    let rig = Rig::new();
    for (how, kind, retryable, message) in [
        ("error", FailureKind::Exception, true, "it broke"),
        ("permanent", FailureKind::Exception, false, "it broke for good"),
        ("panic", FailureKind::Panic, true, "boom"),
        ("nan", FailureKind::ResultInvalid, false, "JSON"),
        ("deep", FailureKind::ResultInvalid, false, "JSON"),
        ("long", FailureKind::Exception, true, "(cut)"),
        ("long result", FailureKind::ResultInvalid, false, "longer than"),
    ] {
        let failure = run(&rig, "fail", how).failed();
        assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{failure:?}");
        assert!(failure.message.contains(message), "{how}: {failure:?}");
    }
    let failure = run(&rig, "count", "seven").failed();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Exception, false));
}

#[test]
fn a_crash_is_the_attempts_alone() {
    let rig = Rig::new();
    for (how, kind, message) in [
        ("exit 0", FailureKind::ExitCode, "exited with code 0 before the task returned"),
        ("exit 3", FailureKind::ExitCode, "exited with code 3 before the task returned"),
        ("abort", FailureKind::Crashed, "SIGABRT"),
        ("segv", FailureKind::Crashed, "SIGSEGV"),
        ("kill", FailureKind::Crashed, "SIGKILL"),
        ("overflow", FailureKind::Crashed, "SIGABRT"),
    ] {
        let failure = run(&rig, "crash", how).failed();
        assert_eq!(failure.kind, kind, "{how}");
        assert!(failure.message.contains(message), "{how}: {failure:?}");
        assert!(failure.retryable);
    }
    assert_eq!(run(&rig, "count", 3).ended(), AttemptEnd::Completed(Value::Int(3)));
}

#[test]
fn a_checkpoint_obeys_pauses_and_stops() {
    let rig = Rig::new();
    let attempt = run(&rig, "loop", Value::Null);
    progressed(&attempt);
    for epoch in 1..=3 {
        attempt.carrier.signal(Signal::Pause { epoch });
        attempt.paused(epoch);
        attempt.carrier.signal(Signal::Resume);
    }
    attempt.carrier.signal(Signal::Pause { epoch: 4 });
    attempt.paused(4);
    attempt.stop();
    assert_eq!(attempt.ended(), AttemptEnd::Interrupted { message: None });
    attempt.reports.get(|all| assert!(all.contains(&Report::Activity)));
}

#[test]
fn a_sleep_is_stopped_at_once_whenever_it_is_asked() {
    let rig = Rig::new();
    for _ in 0..10 {
        let attempt = run(&rig, "patient", Value::Null);
        attempt.stop();
        assert!(matches!(attempt.ended(), AttemptEnd::Interrupted { .. }));
    }
}

#[test]
fn what_never_listens_is_killed() {
    let rig = Rig::new();
    let attempt = run(&rig, "stubborn", Value::Null);
    progressed(&attempt);
    attempt.stop();
    attempt.kill();
    assert_eq!(attempt.interrupted(), "killed by signal 9 (SIGKILL)");
}

#[test]
fn an_unknown_name_fails_the_launch_and_tells_the_known_ones() {
    let message = run(&Rig::new(), "cuont", Value::Null).launch_failed();
    assert!(message.contains("\"cuont\"") && message.contains("\"count\""), "{message}");
}

#[test]
fn a_program_that_does_not_serve_fails_the_launch_and_is_told_what_to_call() {
    let rig = Rig::new();
    for program in ["/bin/true", "/bin/false", "/bin/sh", "/bin/cat"] {
        let message = rig.launch(Command::serving(program, "count")).launch_failed();
        assert!(message.contains("init_with") && message.contains("\"count\""), "{message}");
    }
}

#[test]
fn a_child_that_forgot_its_part_starts_no_children() {
    let rig = Rig::new();
    let file = rig.dir.path().join("result");
    let mut command = Command::serving(TEST_PROGRAM, "count");
    command.env = vec![("TEST_FORGETS_INIT".to_owned(), file.to_str().unwrap().to_owned())];
    let message = rig.launch(command).launch_failed();
    assert!(message.contains("init_with"), "{message}");
    let said = std::fs::read_to_string(file).unwrap();
    assert!(said.contains("started to serve a task"), "{said}");
}

#[test]
fn a_supervisor_inside_a_task_is_no_carrier_although_it_inherits_the_mark() {
    let rig = Rig::new();
    // What a body starts has the variable, but not the pipe.
    let mut command = Command::new([
        "/bin/sh",
        "-c",
        "CHONGMING_SERVE=1 exec \"$0\" supervise 1 true",
        TEST_PROGRAM,
    ]);
    command.env = Vec::new();
    let attempt = rig.launch(command);
    rig.wait_output("Launched");
    attempt.kill();
    attempt.interrupted();
}

#[test]
fn an_endless_chain_of_supervisors_is_refused() {
    let mut supervisor = std::process::Command::new(TEST_PROGRAM);
    supervisor.args(["supervise", "1", "true"]).env("CHONGMING_SUPERVISOR", "x,".repeat(100) + "x");
    let output = supervisor.output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("TooDeep"));
}

#[test]
fn nothing_survives_the_supervisor() {
    let rig = Rig::new();
    let attempt = run(&rig, "loop", Value::Null);
    let pid = rig.number("pid");
    drop(rig);
    assert!(is_gone(pid));
    attempt.interrupted();
}
