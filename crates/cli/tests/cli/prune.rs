//! `prune`.

use crate::support::Sandbox;

#[test]
fn what_ended_long_ago_is_deleted_and_nothing_else() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("a", &["ok"]);
    sandbox.run_task("b", &["fail"]);
    let _nap = sandbox.start_task("c", &["nap"], "running");
    let pruned =
        |args: &[&str]| sandbox.run(&[&["--json", "prune"], args].concat()).expect(0).json();
    assert_eq!(pruned(&["--older-than", "1h"])["tasks"], 0);
    let dry = pruned(&["--older-than", "0s", "--dry-run"]);
    assert_eq!((&dry["tasks"], &dry["dry_run"]), (&2.into(), &true.into()));
    sandbox.run(&["status", "a"]).expect(0);
    assert_eq!(pruned(&["--older-than", "0s"])["tasks"], 2);
    sandbox.run(&["status", "a"]).expect(1);
    sandbox.run(&["history", "b"]).expect(1);
    sandbox.run(&["status", "c"]).expect(0);
    sandbox.run(&["prune"]).expect(1);
    let outcome = sandbox.run(&["prune", "--older-than", "0s"]).expect(0);
    assert!(outcome.out.starts_with("deleted 0 tasks"), "{outcome:?}");
}
