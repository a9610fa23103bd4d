//! `ps`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::Sandbox;

fn ids(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let list = sandbox.run(&[&["--json", "ps"], args].concat()).expect(0).json();
    list.as_array().unwrap().iter().map(|t| t["task_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn unfinished_tasks_or_what_was_asked_for() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("a", &["say", "--arg", "x=tenant-A"]);
    sandbox.run_task("b", &["say", "--arg", "x=tenant-B", "--tag", "gpu"]);
    sandbox.run_task("c", &["fail"]);
    let _nap = sandbox.start_task("d", &["nap"], "running");
    for (args, wanted) in [
        (&[][..], &["d"][..]),
        (&["--all"], &["d", "c", "b", "a"]),
        (&["--status", "failed,running"], &["d", "c"]),
        (&["--all", "--name", "say"], &["b", "a"]),
        (&["--all", "--tag", "io", "--tag", "gpu"], &["b"]),
        (&["--all", "--bucket", "0-15"], &["a"]),
        (&["--all", "--mine", "--owned-buckets", "0-15"], &["a"]),
        (&["--all", "--mine", "--owned-buckets", "0-15", "--bucket", "28"], &[]),
        (&["--all", "--mine", "--owned-buckets", "0-63"], &["d", "c", "b", "a"]),
        (&["--all", "--limit", "2"], &["d", "c"]),
        (&["--all", "--limit", "0"], &["d", "c", "b", "a"]),
    ] {
        assert_eq!(ids(&sandbox, args), wanted, "{args:?}");
    }
    let outcome = sandbox.run(&["ps", "--all"]).expect(0);
    let header: Vec<&str> = outcome.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        header,
        ["TASK_ID", "NAME", "BUCKET", "STATUS", "ATTEMPT", "ELAPSED", "PROGRESS", "FAILURE"]
    );
}

#[test]
fn a_cut_is_told_in_the_last_line() {
    let sandbox = Sandbox::with_tasks();
    for id in ["a", "b", "c"] {
        sandbox.run_task(id, &["ok"]);
    }
    let outcome = sandbox.run(&["ps", "--all", "--limit", "2"]).expect(0);
    assert_eq!(outcome.out.lines().count(), 4);
    assert!(outcome.out.lines().last().unwrap().contains("--limit 0 shows all"), "{outcome:?}");
    let outcome = sandbox.run(&["ps", "--all", "--limit", "3"]).expect(0);
    assert_eq!(outcome.out.lines().count(), 4);
    let outcome = sandbox.run(&["--json", "ps", "--all", "--limit", "2"]).expect(0);
    assert!(outcome.err.contains("--limit 0 shows all"), "{outcome:?}");
}

#[test]
fn a_filter_that_makes_no_sense_is_bad_usage() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("a", &["ok"]);
    for (args, word) in [
        (&["--mine"][..], "--owned-buckets"),
        (&["--bucket", "64"], "64"),
        (&["--owned-buckets", "64"], "64"),
        (&["--status", "ended"], "ended"),
    ] {
        let outcome = sandbox.run(&[&["ps"], args].concat()).expect(1);
        assert!(outcome.err.contains(word), "{args:?}: {outcome:?}");
    }
}

#[test]
fn watch_writes_a_line_of_json_each_time_and_ends_with_its_reader() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("a", &["ok"]);
    let mut command = sandbox.command(&["--json", "ps", "--all", "--watch=10ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let list: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(list[0]["task_id"], "a");
    }
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
