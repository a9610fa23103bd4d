//! A holder that stands still past its lease, as under a debugger or on a machine that swaps: what is decided
//! meanwhile stays decided.

use serde_json::Value;

use crate::support::{Running, Sandbox, is_alive, wait_for};

crate::on_each_store!(
    a_thawed_holder_stops_what_was_declared_lost_and_writes_nothing,
    a_thawed_holder_lets_go_of_what_was_adopted,
    a_thawed_holder_whose_tasks_nobody_took_goes_on,
    a_thawed_holder_hears_first_what_was_said_meanwhile,
);

fn history(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run(&["--json", "history", "t"]).expect(0).json().as_array().unwrap().clone()
}

/// Freezes the holder of `t`, and waits until its lease is over.
fn freeze(sandbox: &Sandbox, run: &Running) {
    run.signal("STOP");
    wait_for("the lease to run out", || {
        let found = sandbox.run(&["--json", "reconcile", "--dry-run"]).expect(0).json();
        found[0]["task_id"] == "t"
    });
}

fn a_thawed_holder_stops_what_was_declared_lost_and_writes_nothing(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap", "--lease-ttl", "1s"], "running");
    let pid = sandbox.until_written("nap.pid");
    freeze(sandbox, &run);
    let found = sandbox.run(&["--json", "reconcile"]).expect(0).json();
    assert_eq!(found[0]["outcome"], "marked-lost", "{found}");
    // Nobody can stop what a frozen holder carries, and nobody claims to.
    assert!(is_alive(&pid));
    let (task, trail) = (sandbox.status("t"), history(sandbox));
    assert_eq!(task["status"], "lost");

    run.signal("CONT");
    let outcome = run.finish().expect(3);
    assert!(outcome.err.contains("`t` was taken over by another process"), "{outcome:?}");
    assert!(outcome.out.contains("t lost"), "{outcome:?}");
    assert!(!is_alive(&pid));
    let now = sandbox.status("t");
    for key in ["status", "status_version", "ended_at", "failure"] {
        assert_eq!(now[key], task[key], "{key}");
    }
    assert_eq!(history(sandbox), trail);
}

fn a_thawed_holder_lets_go_of_what_was_adopted(sandbox: &Sandbox) {
    let args = ["later", "--lease-ttl", "1s", "--owner", "first"];
    let run = sandbox.start_task("t", &args, "retry_wait");
    freeze(sandbox, &run);
    let task = sandbox.run_task("t", &["--json", "later", "--owner", "second"]).expect(3).json();
    let adopted = (&task["status"], &task["owner"], &task["attempt"]);
    assert_eq!(adopted, (&"failed".into(), &"second".into(), &2.into()));
    let trail = history(sandbox);
    let adoptions = trail.iter().filter(|row| row["trigger"] == "recovery:adopted").count();
    assert_eq!(adoptions, 1, "{trail:?}");

    run.signal("CONT");
    let outcome = run.finish().expect(3);
    assert!(outcome.err.contains("`t` was taken over by another process"), "{outcome:?}");
    assert_eq!(sandbox.status("t")["owner"], "second");
    assert_eq!(history(sandbox), trail);
}

fn a_thawed_holder_whose_tasks_nobody_took_goes_on(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap", "--lease-ttl", "1s"], "running");
    freeze(sandbox, &run);
    // Nobody can take the request, and that is told.
    let verdict = sandbox.run(&["--json", "stop", "t"]).expect(3).json();
    assert_eq!(verdict[0]["accepted"], false, "{verdict}");
    run.signal("CONT");
    wait_for("the holder to be back", || {
        sandbox.run(&["--json", "nodes"]).expect(0).json()[0]["alive"] == true
    });
    assert_eq!(sandbox.status("t")["status"], "running");
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    let outcome = run.finish().expect(3);
    assert!(!outcome.err.contains("taken over"), "{outcome:?}");
    assert_eq!(sandbox.status("t")["status"], "stopped");
}

const TALKER: &str = r#"
[tasks.talk]
command = ["sh", "-c", "n=0; until [ -e enough ]; do n=$((n+1)); echo $n; echo $n > said; sleep 0.1; done"]
timeout = { idle = "2s" }
"#;

fn a_thawed_holder_hears_first_what_was_said_meanwhile(sandbox: &Sandbox) {
    sandbox.write("m.toml", TALKER);
    let run = sandbox.start_task("t", &["talk"], "running");
    let said = || sandbox.until_written("said").parse::<u32>().unwrap_or(0);
    run.signal("STOP");
    // Longer than the time-out for silence, by the task's own count.
    let before = said();
    wait_for("the task to talk on", || said() > before + 30);
    run.signal("CONT");
    sandbox.write("enough", "");
    assert!(run.finish().expect(0).out.contains("t succeeded"));
}
