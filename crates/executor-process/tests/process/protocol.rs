//! Commands that speak the task protocol, in shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use chongming_core::{
    AttemptEnd, Executor, FailureKind, Launch, Progress, Report, Signal, Target, TaskId, Value,
};

use crate::support::{Attempt, Rig, Sink, Watched, sh, state};

/// Says hello, and with its first progress that the hello was heard.
fn hello(handles: &str) -> String {
    format!(
        "say() {{ echo \"$1\" >&$CHONGMING_TASK_OUT; }}; read start <&3; \
         say '{{\"type\":\"hello\",\"protocol\":1,\"handles\":[{handles}]}}'; \
         say '{{\"type\":\"progress\",\"done\":0}}'; "
    )
}

fn heard_hello(attempt: &Attempt) {
    attempt.reports.wait("progress", |all| {
        all.iter().any(|report| matches!(report, Report::Progress(_))).then_some(())
    });
}

#[test]
fn a_child_gets_its_arguments_and_returns_a_result() {
    let rig = Rig::new();
    let reports = Arc::new(Watched::new(Vec::new()));
    let script = "read -r start <&$CHONGMING_TASK_IN; echo \"$start\"; \
                  echo '{\"type\":\"result\",\"value\":{\"rows\":[1,2.5,\"x\"]}}' >&4";
    let big = "y".repeat(300_000);
    let carrier = rig.executor.launch(Launch {
        task_id: TaskId::new("t1").unwrap(),
        name: "job \"q\"".into(),
        attempt: 3,
        target: Target::External(sh(script).into_target()),
        args: Value::Map(BTreeMap::from([("big".to_owned(), Value::String(big.clone()))])),
        upstream: Arc::new(BTreeMap::from([("fetch".into(), Value::Int(7))])),
        files: None,
        sink: Arc::new(Sink(Arc::clone(&reports))),
    });
    let attempt = Attempt { carrier, reports };
    let rows = Value::List(vec![Value::Int(1), Value::Float(2.5), Value::String("x".to_owned())]);
    let result = Value::Map(BTreeMap::from([("rows".to_owned(), rows)]));
    assert_eq!(attempt.ended(), AttemptEnd::Completed(result));
    let expected = format!(
        "{{\"type\":\"start\",\"protocol\":1,\"task_id\":\"t1\",\"name\":\"job \\\"q\\\"\",\"attempt\":3,\
         \"args\":{{\"big\":\"{big}\"}},\"upstream\":{{\"fetch\":7}},\"artifact_dir\":null}}\n"
    );
    rig.output.get(|output| assert!(*output == expected, "{}", &output[..200]));
}

#[test]
fn it_pauses_resumes_and_stops_by_itself() {
    let rig = Rig::new();
    let attempt = rig.sh(&format!(
        "trap 'echo signalled' TERM; {} echo pid $$; while read -r line <&3; do echo \"$line\"; case $line in \
         *pause*) say '{{\"type\":\"paused\"}}';; \
         *stop*) say '{{\"type\":\"result\",\"value\":\"half\"}}'; exit 0;; esac; done",
        hello("\"stop\",\"pause\"")
    ));
    heard_hello(&attempt);
    let pid = rig.number("pid");
    for epoch in 1..=3 {
        attempt.carrier.signal(Signal::Pause { epoch });
        attempt.paused(epoch);
        assert_ne!(state(pid), Some('T'), "it suspends itself");
        attempt.carrier.signal(Signal::Resume);
    }
    attempt.stop();
    assert_eq!(attempt.ended(), AttemptEnd::Completed(Value::String("half".to_owned())));
    let output = rig.output.get(String::clone);
    assert!(!output.contains("signalled"), "{output}");
    assert_eq!(output.matches("{\"type\":\"resume\"}").count(), 3, "{output}");
    assert!(
        output.contains("{\"type\":\"stop\",\"reason\":\"test\",\"grace_ms\":60000}"),
        "{output}"
    );
}

#[test]
fn what_it_does_not_handle_goes_by_signals() {
    let rig = Rig::new();
    let attempt = rig.sh(&format!("{} echo pid $$; exec sleep 1000", hello("")));
    heard_hello(&attempt);
    let pid = rig.number("pid");
    attempt.carrier.signal(Signal::Pause { epoch: 1 });
    attempt.paused(1);
    assert_eq!(state(pid), Some('T'));
    attempt.stop();
    assert_eq!(attempt.interrupted(), "killed by signal 15 (SIGTERM)");
}

#[test]
fn a_stop_without_a_result_is_confirmed() {
    let rig = Rig::new();
    let attempt = rig.sh(&format!("{} read -r line <&3; exit 0", hello("\"stop\"")));
    heard_hello(&attempt);
    attempt.stop();
    assert_eq!(attempt.interrupted(), "exited with code 0");
}

#[test]
fn progress_and_logs_are_passed_on_and_only_a_checkpoint_is_activity() {
    let rig = Rig::new();
    let attempt = rig.sh(&format!(
        "{} echo noise; say '{{\"type\":\"progress\",\"done\":1,\"total\":2}}'; \
         say '{{\"type\":\"log\",\"level\":\"warn\",\"message\":\"careful\"}}'",
        hello("")
    ));
    attempt.completed();
    let progress = Progress { done: 1.0, total: Some(2.0), unit: None, message: None };
    attempt.reports.get(|all| {
        assert!(all.contains(&Report::Progress(progress)));
        // Noise may be read before the hello; a checkpoint is tested alone below.
        assert!(matches!(all.last(), Some(Report::Ended(_))));
    });
    assert!(std::fs::read_to_string(rig.log()).unwrap().contains("[warn] careful\n"));
    let attempt = rig.sh(&format!("{} say '{{\"type\":\"checkpoint\"}}'", hello("")));
    attempt.completed();
    attempt.reports.get(|all| assert!(all.contains(&Report::Activity)));
}

#[test]
fn failures_and_bad_results_are_told_by_their_kind() {
    let rig = Rig::new();
    let kind = |script: &str| {
        let failure = rig.sh(script).failed();
        (failure.kind, failure.retryable)
    };
    let nan = "echo '{\"type\":\"result\",\"value\":NaN}' >&4";
    let good = "echo '{\"type\":\"result\",\"value\":1}' >&4";
    let failure = "echo '{\"type\":\"failure\",\"message\":\"no\",\"retryable\":false}' >&4";
    assert_eq!(kind(nan), (FailureKind::ResultInvalid, false));
    assert_eq!(kind(&format!("{good}; {failure}")), (FailureKind::Exception, false));
    assert_eq!(kind(&format!("{good}; exit 1")), (FailureKind::ExitCode, true));
    assert_eq!(kind(&format!("{good}; kill -KILL $$")), (FailureKind::Crashed, true));
    assert_eq!(rig.sh(&format!("{nan}; {good}")).ended(), AttemptEnd::Completed(Value::Int(1)));
}

#[test]
fn noise_on_the_channel_is_survived() {
    let rig = Rig::new();
    // Endless, binary, never ended; more than a line may have.
    let attempt = rig.sh(
        "head -c 40000000 /dev/zero >&4; echo >&4; head -c 100000 /dev/urandom >&4; echo >&4; \
         printf '{\"type\":\"result\",\"value\":5}' >&4; exec 3<&- ; exit 0",
    );
    assert_eq!(attempt.ended(), AttemptEnd::Completed(Value::Int(5)));
}

#[test]
fn a_left_over_that_holds_the_channel_delays_nothing() {
    let rig = Rig::new();
    let attempt = rig.sh("sleep 1000 & echo '{\"type\":\"result\",\"value\":1}' >&4");
    assert_eq!(attempt.ended(), AttemptEnd::Completed(Value::Int(1)));
}
