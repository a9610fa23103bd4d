//! The example node, as its users run it.

use crate::support::{Running, Sandbox, example, wait_for};

crate::on_each_store!(
    two_nodes_share_the_tenants,
    it_is_seen_and_stopped_from_another_process,
    a_termination_is_an_orderly_end,
    after_a_crash_the_next_life_tells_and_takes_over,
    an_overlap_is_warned_of,
);

/// Starts node `i` of `n` for these tenants.
fn start(sandbox: &Sandbox, node: (&str, &str), pages: &str, tenants: &[&str]) -> Running {
    let database = sandbox.database();
    let options = ["--db", &database, "--node", node.0, "--of", node.1, "--pages", pages];
    let args = [&options[..], &["--lease", "1"], tenants].concat();
    sandbox.start_program(&example("node"), &args)
}

const ENDLESS: &str = "1000000";

fn two_nodes_share_the_tenants(sandbox: &Sandbox) {
    let tenants = ["tenant-A", "tenant-B", "tenant-C"];
    for (node, owned, ours) in
        [("0", "0-31", &["tenant-A", "tenant-B"][..]), ("1", "32-63", &["tenant-C"])]
    {
        let outcome = start(sandbox, (node, "2"), "2", &tenants).finish().expect(0);
        let mut expected = vec![format!("node-{node} owns buckets {owned} of 64")];
        expected.extend(ours.iter().map(|tenant| format!("sync-{tenant} accepted")));
        expected.extend(ours.iter().map(|tenant| format!("sync-{tenant} succeeded")));
        expected.push(format!("node-{node} ends: 0 unfinished, 0 unwritten"));
        let mut lines: Vec<&str> = outcome.out.lines().collect();
        // Two tasks in different buckets end in either order.
        let ends = 1 + ours.len()..1 + 2 * ours.len();
        lines[ends].sort_unstable();
        assert_eq!(lines, expected);
        assert_eq!(outcome.err, "");
    }
    let log = sandbox.run(&["logs", "sync-tenant-C"]).expect(0).out;
    assert!(log.ends_with("Z INFO attempt 1 for tenant-C\n"), "{log}");
    // What has been done is not done again.
    let outcome = start(sandbox, ("1", "2"), "2", &tenants).finish().expect(0);
    assert!(outcome.out.contains("sync-tenant-C was succeeded before\n"), "{outcome:?}");
}

fn it_is_seen_and_stopped_from_another_process(sandbox: &Sandbox) {
    let node = start(sandbox, ("0", "2"), ENDLESS, &["tenant-A"]);
    sandbox.until("sync-tenant-A", "running");
    wait_for("progress", || !sandbox.status("sync-tenant-A")["progress"].is_null());
    let task = sandbox.status("sync-tenant-A");
    assert_eq!((&task["owner"], &task["bucket"]), (&"node-0".into(), &7.into()));
    sandbox.run(&["pause", "sync-tenant-A", "--wait", "60s"]).expect(0);
    sandbox.run(&["resume", "sync-tenant-A", "--wait", "60s"]).expect(0);
    let stop = ["stop", "sync-tenant-A", "--reason", "release window", "--wait", "60s"];
    sandbox.run(&stop).expect(0);
    let outcome = node.finish().expect(0);
    assert_eq!(
        outcome.out,
        "node-0 owns buckets 0-31 of 64\n\
         sync-tenant-A accepted\n\
         sync-tenant-A stopped, user:stop: release window\n\
         node-0 ends: 0 unfinished, 0 unwritten\n"
    );
}

fn a_termination_is_an_orderly_end(sandbox: &Sandbox) {
    // tenant-A and tenant-B run, each in its bucket; nothing is left in doubt.
    let node = start(sandbox, ("0", "2"), ENDLESS, &["tenant-A", "tenant-B"]);
    for id in ["sync-tenant-A", "sync-tenant-B"] {
        sandbox.until(id, "running");
    }
    node.signal("TERM");
    let outcome = node.finish().expect(0);
    assert!(outcome.out.ends_with("node-0 ends: 0 unfinished, 0 unwritten\n"), "{outcome:?}");
    for id in ["sync-tenant-A", "sync-tenant-B"] {
        assert!(outcome.out.contains(&format!("{id} stopped\n")), "{outcome:?}");
        let trail = sandbox.run(&["--json", "history", id]).expect(0).json();
        assert_eq!(trail[3]["trigger"], "runtime:shutdown", "{trail}");
    }
    assert_eq!(sandbox.run(&["--json", "nodes"]).expect(0).json()[0]["alive"], false);
    assert_eq!(sandbox.run(&["doctor", "--stale", "0s"]).expect(0).out, "no alerts\n");
}

fn after_a_crash_the_next_life_tells_and_takes_over(sandbox: &Sandbox) {
    // Both in one bucket, which runs one at a time: the second waits.
    let tenants = ["tenant-A", "tenant-80"];
    let node = start(sandbox, ("0", "1"), ENDLESS, &tenants);
    sandbox.until("sync-tenant-A", "running");
    node.crash();
    let outcome = start(sandbox, ("0", "1"), "2", &tenants).finish().expect(0);
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert!(lines[1].starts_with("sync-tenant-A is lost: its holder "), "{lines:?}");
    assert_eq!(
        lines[2..],
        [
            "sync-tenant-A was lost before",
            "sync-tenant-80 accepted",
            "sync-tenant-80 succeeded",
            "node-0 ends: 0 unfinished, 0 unwritten",
        ]
    );
    let trail = sandbox.run(&["--json", "history", "sync-tenant-80"]).expect(0).json();
    assert_eq!(trail[1]["trigger"], "recovery:adopted", "{trail}");
}

fn an_overlap_is_warned_of(sandbox: &Sandbox) {
    let _first = start(sandbox, ("0", "2"), ENDLESS, &["tenant-A"]);
    sandbox.until("sync-tenant-A", "running");
    for (node, warning) in [
        ("0", "warning: owner \"node-0\" lives 2 times "),
        ("1", "warning: buckets 21-31 owned by two living nodes, \"node-0\" and \"node-1\"; "),
    ] {
        let outcome = start(sandbox, (node, "3"), "2", &[]).finish().expect(0);
        assert!(outcome.err.starts_with(warning), "{outcome:?}");
        assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
    }
}
