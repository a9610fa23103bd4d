//! `reconcile`.

use crate::support::{Sandbox, is_alive, wait_for};

crate::on_each_store!(a_crash_in_the_midst_of_work_is_a_loss,);

fn a_crash_in_the_midst_of_work_is_a_loss(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap", "--lease-ttl", "1s"], "running");
    let pid = sandbox.until_written("nap.pid");
    let empty = serde_json::json!([]);
    assert_eq!(sandbox.run(&["--json", "reconcile"]).expect(0).json(), empty);
    run.crash();
    wait_for("the command to end with its supervisor", || !is_alive(&pid));
    wait_for("the lease to run out", || {
        sandbox.run(&["--json", "reconcile", "--dry-run"]).expect(0).json() != empty
    });
    assert_eq!(sandbox.status("t")["status"], "running");
    let elsewhere = ["--json", "--owned-buckets", "0-15", "reconcile"];
    assert_eq!(sandbox.run(&elsewhere).expect(0).json(), empty, "not in the owned buckets");
    let found = sandbox.run(&["--json", "reconcile", "--reason", "worker died"]).expect(0).json();
    assert_eq!(
        (&found[0]["outcome"], &found[0]["was"]),
        (&"marked-lost".into(), &"running".into())
    );
    let task = sandbox.run(&["--json", "status", "t"]).expect(3).json();
    assert_eq!((&task["status"], &task["failure"]["kind"]), (&"lost".into(), &"lost".into()));
    let history = sandbox.run(&["--json", "history", "t"]).json();
    assert_eq!(history[3]["trigger"], "recovery:lease_expired");
    assert_eq!(history[3]["reason"], "worker died");
    assert_eq!(sandbox.run(&["--json", "reconcile"]).expect(0).json(), empty);
}
