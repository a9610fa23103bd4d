//! `nodes` and `doctor`.

use crate::support::{Sandbox, wait_for};

crate::on_each_store!(
    a_node_is_listed_with_its_buckets_and_stays_when_it_is_dead,
    overlaps_and_owners_that_live_twice_are_alerts,
    a_crash_leaves_orphans_and_buckets_without_a_node,
    a_task_left_in_wait_by_a_crash_is_taken_over,
    a_node_that_starts_into_an_overlap_says_so,
);

fn args<'a>(owner: &'a str, owned: &'a str) -> [&'a str; 7] {
    ["nap", "--owner", owner, "--owned-buckets", owned, "--bucket-key", "tenant-A"]
}

fn a_node_is_listed_with_its_buckets_and_stays_when_it_is_dead(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &args("node-a", "0-15"), "running");
    let nodes = sandbox.run(&["--json", "nodes"]).expect(0).json();
    assert_eq!((&nodes[0]["owner"], &nodes[0]["alive"]), (&"node-a".into(), &true.into()));
    assert_eq!(nodes[0]["owned_buckets"].as_array().unwrap().len(), 16);
    run.signal("TERM");
    run.finish().expect(3);
    let nodes = sandbox.run(&["--json", "nodes"]).expect(0).json();
    assert_eq!(nodes[0]["alive"], false);
    assert!(sandbox.run(&["nodes"]).expect(0).out.contains("0-15 of 64"));
    // Looking makes nobody a node.
    assert_eq!(nodes.as_array().unwrap().len(), 1);
}

fn overlaps_and_owners_that_live_twice_are_alerts(sandbox: &Sandbox) {
    let _a = sandbox.start_task("t", &args("node-a", "0-15"), "running");
    assert_eq!(sandbox.run(&["doctor"]).expect(0).out, "no alerts\n");
    let _b = sandbox.start_task("u", &args("node-b", "7,9"), "running");
    let _c = sandbox.start_task("v", &args("node-b", "7,9"), "running");
    let alerts = sandbox.run(&["--json", "doctor"]).expect(3).json()["alerts"].clone();
    let kinds: Vec<&str> =
        alerts.as_array().unwrap().iter().map(|alert| alert["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["bucket-overlap", "owner-twice"], "{alerts}");
    assert_eq!(alerts[0]["buckets"], serde_json::json!([7, 9]));
    assert!(sandbox.run(&["doctor"]).expect(3).out.starts_with("ALERT"));
}

fn a_crash_leaves_orphans_and_buckets_without_a_node(sandbox: &Sandbox) {
    let args = [&args("node-a", "0-15")[..], &["--lease-ttl", "200ms"]].concat();
    sandbox.start_task("t", &args, "running").crash();
    wait_for("the alerts", || {
        let alerts = sandbox.run(&["--json", "doctor", "--stale", "0s"]).json()["alerts"].clone();
        let kinds: Vec<&str> = alerts
            .as_array()
            .unwrap()
            .iter()
            .map(|alert| alert["kind"].as_str().unwrap())
            .collect();
        kinds == ["bucket-unowned", "orphan-task"]
    });
    let fresh = sandbox.run(&["--json", "doctor", "--stale", "1h"]).expect(3).json();
    assert_eq!(fresh["alerts"].as_array().unwrap().len(), 1, "{fresh}");
}

fn a_task_left_in_wait_by_a_crash_is_taken_over(sandbox: &Sandbox) {
    sandbox.start_task("t", &["later", "--lease-ttl", "200ms"], "retry_wait").crash();
    wait_for("the lease to run out", || {
        let found = sandbox.run(&["--json", "reconcile", "--dry-run"]).json();
        found[0]["outcome"] == "adoptable"
    });
    let task = sandbox.run_task("t", &["--json", "later"]).expect(3).json();
    assert_eq!((&task["attempt"], &task["status"]), (&2.into(), &"failed".into()));
}

fn a_node_that_starts_into_an_overlap_says_so(sandbox: &Sandbox) {
    let args = |owner| ["--owner", owner, "--owned-buckets", "0-15", "--bucket-key", "tenant-A"];
    let _first = sandbox.start_task("t", &[&["nap"][..], &args("a")].concat(), "running");
    let outcome = sandbox.run_task("u", &[&["ok"][..], &args("b")].concat()).expect(0);
    assert!(outcome.err.contains("owned by two living nodes, \"a\" and \"b\""), "{outcome:?}");
}
