//! `wait`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::Sandbox;

crate::on_each_store!(
    all_must_have_succeeded,
    it_waits_for_the_end_and_no_longer_than_told,
    a_task_that_nobody_holds_is_told,
);

fn all_must_have_succeeded(sandbox: &Sandbox) {
    sandbox.run_task("a", &["ok"]);
    sandbox.run_task("b", &["fail"]);
    sandbox.run(&["wait", "a"]).expect(0);
    let outcome = sandbox.run(&["wait", "a", "b"]).expect(3);
    assert!(outcome.out.contains("a succeeded") && outcome.out.contains("b failed"), "{outcome:?}");
    let list = sandbox.run(&["--json", "wait", "b", "a"]).expect(3).json();
    assert_eq!((&list[0]["task_id"], &list[1]["task_id"]), (&"b".into(), &"a".into()));
    sandbox.run(&["wait", "a", "nobody"]).expect(1);
}

fn it_waits_for_the_end_and_no_longer_than_told(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap"], "running");
    let list = sandbox.run(&["--json", "wait", "t", "--timeout", "100ms"]).expect(3).json();
    assert_eq!(list[0]["status"], "running");
    let mut command = sandbox.command(&["wait", "t"]);
    let waiting = command.stdout(Stdio::null()).spawn().unwrap();
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(3));
    run.finish().expect(3);
}

fn a_task_that_nobody_holds_is_told(sandbox: &Sandbox) {
    sandbox.start_task("t", &["nap", "--lease-ttl", "200ms"], "running").crash();
    let mut command = sandbox.command(&["wait", "t"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let note = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(note.contains("`t` is running and nobody holds it"), "{note}");
    child.kill().unwrap();
    child.wait().unwrap();
}
