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

#[test]
fn logs_and_artifacts_go_with_their_tasks_and_nothing_else_does() {
    let sandbox = Sandbox::with_tasks();
    let at = |name: &str| sandbox.path(&format!("tasks.db.artifacts/{name}"));
    for id in ["a", "b", "run:node"] {
        sandbox.run_task(id, &["ok"]).expect(0);
    }
    std::fs::create_dir_all(at("a/1/deep")).unwrap();
    std::fs::write(at("b/mine.txt"), "not of the task").unwrap();
    let _nap = sandbox.start_task("c", &["nap"], "running");
    sandbox.run(&["prune", "--older-than", "0s", "--dry-run"]).expect(0);
    sandbox.run(&["prune", "--older-than", "1h"]).expect(0);
    assert!(at("a/1.log").exists() && at("a/1/deep").exists());
    sandbox.run(&["prune", "--older-than", "0s"]).expect(0);
    assert!(!at("a").exists() && !at("run%3Anode").exists());
    assert!(!at("b/1.log").exists() && at("b/mine.txt").exists());
    assert!(at("c/1.log").exists());
}

#[test]
fn files_that_cannot_be_deleted_keep_their_task() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("a", &["ok"]).expect(0);
    // A folder in the place of the log cannot be removed as a file, whoever runs the test.
    let log = sandbox.path("tasks.db.artifacts/a/1.log");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let outcome = sandbox.run(&["prune", "--older-than", "0s"]).expect(1);
    assert!(outcome.err.contains("1.log") && outcome.err.contains("`a`"), "{outcome:?}");
    sandbox.run(&["status", "a"]).expect(0);
}

#[test]
fn files_that_cannot_be_deleted_do_not_hold_up_what_ended_before() {
    let sandbox = Sandbox::with_tasks();
    for id in ["before", "stuck", "after"] {
        sandbox.run_task(id, &["ok"]).expect(0);
    }
    let log = |id: &str| sandbox.path(&format!("tasks.db.artifacts/{id}/1.log"));
    std::fs::remove_file(log("stuck")).unwrap();
    std::fs::create_dir(log("stuck")).unwrap();
    let outcome = sandbox.run(&["prune", "--older-than", "0s"]).expect(1);
    assert!(outcome.out.starts_with("deleted 1 tasks"), "{outcome:?}");
    assert!(outcome.err.contains("`stuck`"), "{outcome:?}");
    sandbox.run(&["status", "before"]).expect(1);
    sandbox.run(&["status", "after"]).expect(0);
    assert!(!log("before").exists() && !log("after").exists());
    std::fs::remove_dir(log("stuck")).unwrap();
    let outcome = sandbox.run(&["prune", "--older-than", "0s"]).expect(0);
    assert!(outcome.out.starts_with("deleted 2 tasks"), "{outcome:?}");
}

#[test]
fn a_link_in_the_place_of_a_tasks_folder_is_removed_and_not_followed() {
    let sandbox = Sandbox::with_tasks();
    for id in ["a", "b"] {
        sandbox.run_task(id, &["ok"]).expect(0);
    }
    let (folder, outside) = (sandbox.path("tasks.db.artifacts/a"), sandbox.path("outside"));
    std::fs::rename(&folder, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &folder).unwrap();
    let outcome = sandbox.run(&["prune", "--older-than", "0s"]).expect(0);
    assert!(outcome.out.starts_with("deleted 2 tasks"), "{outcome:?}");
    assert!(folder.symlink_metadata().is_err() && outside.join("1.log").exists());
}
