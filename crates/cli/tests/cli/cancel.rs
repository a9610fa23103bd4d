//! `cancel`.

use crate::support::Sandbox;

crate::on_each_store!(a_cancelled_task_is_not_a_stopped_one,);

fn a_cancelled_task_is_not_a_stopped_one(sandbox: &Sandbox) {
    let running = sandbox.start_task("t", &["nap"], "running");
    let waiting = sandbox.start_task("u", &["later"], "retry_wait");
    let verdicts = sandbox
        .run(&["--json", "cancel", "t", "u", "--reason", "not needed", "--wait", "60s"])
        .expect(0)
        .json();
    assert!(verdicts.as_array().unwrap().iter().all(|v| v["confirmed"] == true), "{verdicts}");
    for (id, run) in [("t", running), ("u", waiting)] {
        run.finish().expect(3);
        assert_eq!(sandbox.status(id)["status"], "cancelled");
        let history = sandbox.run(&["--json", "history", id]).json();
        let cause = history.as_array().unwrap().iter().find(|row| row["trigger"] == "user:cancel");
        assert_eq!(cause.unwrap()["reason"], "not needed");
    }
}
