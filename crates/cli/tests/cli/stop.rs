//! `stop`.

use crate::support::{Sandbox, is_alive, wait_for};

crate::on_each_store!(
    a_stop_from_another_process_is_confirmed_and_recorded,
    without_wait_nothing_is_confirmed,
    a_stop_that_takes_longer_than_the_wait_is_not_confirmed,
    what_has_ended_is_refused_and_what_is_unknown_is_an_error,
    a_task_that_waits_for_a_dead_holder_is_stopped_directly,
);

fn a_stop_from_another_process_is_confirmed_and_recorded(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap"], "running");
    let pid = sandbox.until_written("nap.pid");
    let args = ["--json", "stop", "t", "--reason", "发布窗口", "--wait", "60s"];
    let verdict = sandbox.run(&args).expect(0).json();
    assert_eq!(
        verdict,
        serde_json::json!([
            {"task_id": "t", "accepted": true, "confirmed": true, "result": "ended as stopped"}
        ])
    );
    assert!(!is_alive(&pid));
    let history = sandbox.run(&["--json", "history", "t"]).json();
    assert_eq!((&history[3]["actor"], &history[3]["reason"]), (&"user".into(), &"发布窗口".into()));
    run.finish().expect(3);
}

fn without_wait_nothing_is_confirmed(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap"], "running");
    let verdict = sandbox.run(&["--json", "stop", "t"]).expect(0).json();
    assert_eq!((&verdict[0]["accepted"], &verdict[0]["confirmed"]), (&true.into(), &().into()));
    run.finish().expect(3);
    assert_eq!(sandbox.status("t")["status"], "stopped");
}

fn a_stop_that_takes_longer_than_the_wait_is_not_confirmed(sandbox: &Sandbox) {
    let _run = sandbox.start_task("t", &["deaf", "--grace", "1h"], "running");
    sandbox.until_written("deaf.pid");
    let verdict = sandbox.run(&["--json", "stop", "t", "--wait", "2s"]).expect(3).json();
    assert_eq!((&verdict[0]["accepted"], &verdict[0]["confirmed"]), (&true.into(), &false.into()));
}

fn what_has_ended_is_refused_and_what_is_unknown_is_an_error(sandbox: &Sandbox) {
    sandbox.run_task("t", &["ok"]);
    let verdict = sandbox.run(&["--json", "stop", "t"]).expect(3).json();
    assert_eq!(verdict[0]["accepted"], false);
    assert!(verdict[0]["result"].as_str().unwrap().contains("succeeded"), "{verdict}");
    let outcome = sandbox.run(&["--json", "stop", "t", "nobody"]).expect(1);
    assert!(outcome.err.contains("no task `nobody`"), "{outcome:?}");
    assert_eq!(outcome.json().as_array().unwrap().len(), 2);
}

fn a_task_that_waits_for_a_dead_holder_is_stopped_directly(sandbox: &Sandbox) {
    sandbox.start_task("t", &["later", "--lease-ttl", "200ms"], "retry_wait").crash();
    wait_for("the lease to run out", || {
        let found = sandbox.run(&["--json", "reconcile", "--dry-run"]).json();
        found[0]["outcome"] == "adoptable"
    });
    let verdict = sandbox.run(&["--json", "stop", "t", "--wait", "60s"]).expect(0).json();
    assert_eq!(verdict[0]["confirmed"], true, "{verdict}");
    assert_eq!(sandbox.status("t")["status"], "stopped");
}
