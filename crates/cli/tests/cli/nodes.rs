//! `nodes` and `doctor`.

use crate::support::{Sandbox, wait_for};

fn args<'a>(owner: &'a str, owned: &'a str) -> [&'a str; 7] {
    ["nap", "--owner", owner, "--owned-buckets", owned, "--bucket-key", "tenant-A"]
}

#[test]
fn a_node_is_listed_with_its_buckets_and_stays_when_it_is_dead() {
    let sandbox = Sandbox::with_tasks();
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

#[test]
fn overlaps_and_owners_that_live_twice_are_alerts() {
    let sandbox = Sandbox::with_tasks();
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

#[test]
fn a_crash_leaves_orphans_and_buckets_without_a_node() {
    let sandbox = Sandbox::with_tasks();
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
