//! `pipeline`.

use serde_json::{Value, json};

use crate::support::{Sandbox, is_alive, wait_for};

const PIPELINES: &str = r#"
[tasks.number]
command = ["sh", "-c", '''
echo '{{"type":"hello","protocol":1}}' >&4
echo '{{"type":"result","value":{{"n":41}}}}' >&4''']
[tasks.read]
command = ["sh", "-c", "head -n 1 <&3 > start.json; echo '{{\"type\":\"hello\",\"protocol\":1}}' >&4"]
params = { whole = {}, part = { default = "d" } }
bucket_key = "k-{part}"
[tasks.show]
command = ["printf", "%s|%s\\n", "{whole}", "{part}"]
params = { whole = {}, part = { default = "d" } }
[tasks.bad]
command = ["sh", "-c", "echo the-reason >&2; exit 7"]
[tasks.nap]
command = ["sh", "-c", "echo $$ > nap.pid; exec sleep 600"]
[tasks.done]
command = ["sh", "-c", "echo done > done.txt"]

[pipelines.flow]
nodes = [
  { id = "n", task = "number" },
  { id = "read", task = "read", args = { whole = "{n.value}", part = "p" }, depends_on = ["n"] },
  { id = "show", task = "show", args = { whole = "{n.value}", part = "{{n}} {n.value}" }, depends_on = ["n"] },
]
[pipelines.broken]
nodes = [
  { id = "a", task = "bad", retry = { max_attempts = 2 } },
  { id = "b", task = "nap", priority = 1, bucket_key = "own" },
  { id = "c", task = "done", depends_on = ["a"] },
  { id = "clean", task = "done", depends_on = ["c"], join = "all_settled" },
]
[pipelines.long]
nodes = [
  { id = "nap", task = "nap" },
  { id = "after", task = "done", depends_on = ["nap"], join = "all_settled" },
]
"#;

/// Its mistake is told by every command that reads it.
const CIRCLE: &str = r#"
[pipelines.circle]
nodes = [
  { id = "a", task = "done", depends_on = ["b"] },
  { id = "b", task = "done", depends_on = ["a"] },
]
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("m.toml", PIPELINES);
    sandbox
}

fn run(sandbox: &Sandbox, args: &[&str], code: i32) -> crate::support::Outcome {
    sandbox.run(&[&["pipeline", "--tasks", "m.toml"], args].concat()).expect(code)
}

/// `node: status` of each node.
fn statuses(run: &Value) -> Vec<String> {
    let nodes = run["nodes"].as_array().unwrap().iter();
    let text = |node: &Value, key| node[key].as_str().unwrap().to_owned();
    nodes.map(|node| format!("{}: {}", text(node, "node"), text(node, "status"))).collect()
}

#[test]
fn results_flow_to_direct_downstream_nodes() {
    let sandbox = sandbox();
    let outcome = run(&sandbox, &["--json", "flow", "--id", "r"], 0);
    let doc = outcome.json();
    assert_eq!(
        (&doc["pipeline"], &doc["run_id"], &doc["status"]),
        (&json!("flow"), &json!("r"), &json!("succeeded"))
    );
    let read = &doc["nodes"][1];
    assert_eq!(
        (&read["task_id"], &read["label"], &read["depends_on"], &read["join"]),
        (&json!("r:read"), &json!("flow/read"), &json!(["n"]), &json!("all_succeeded"))
    );
    assert_eq!(read["bucket_key"], "k-p");
    // A placeholder that is the whole argument keeps its type; inside a text it is text.
    let start: Value = serde_json::from_str(&sandbox.until_written("start.json")).unwrap();
    assert_eq!(start["args"], json!({"whole": {"n": 41}, "part": "p"}));
    assert_eq!(start["upstream"], json!({"n": {"n": 41}}));
    let shown = sandbox.run(&["logs", "r:show"]).expect(0).out;
    assert_eq!(shown, "{\"n\":41}|{n} {\"n\":41}\n");
    let steps = sandbox.run(&["--json", "history", "r:show"]).json();
    assert_eq!(
        (&steps[0]["trigger"], &steps[1]["trigger"]),
        (&json!("orchestrator:waiting_for_upstream"), &json!("orchestrator:dependencies_resolved"))
    );
}

#[test]
fn a_failure_skips_cancels_and_leaves_the_clean_up() {
    let sandbox = sandbox();
    let outcome = run(&sandbox, &["broken", "--id", "r", "--bucket-key", "k", "--tag", "t"], 3);
    // The nap may be withdrawn before it has started.
    assert!(
        outcome.out.contains(
            "pipeline broken (r) failed: 1 succeeded, 1 failed, 1 cancelled, 1 skipped\n"
        ),
        "{outcome:?}"
    );
    for line in ["a: failed after ", "b: cancelled", "c: skipped", "clean: succeeded after "] {
        assert!(outcome.err.lines().any(|told| told.starts_with(line)), "{line}: {outcome:?}");
    }
    let (a, b) = (sandbox.status("r:a"), sandbox.status("r:b"));
    assert_eq!(
        (&a["attempt"], &a["bucket_key"], &a["tags"]),
        (&json!(2), &json!("k"), &json!(["t"]))
    );
    assert_eq!((&b["priority"], &b["bucket_key"]), (&json!(1), &json!("own")));
    let history = sandbox.run(&["--json", "history", "r:c"]).json();
    assert_eq!(history[1]["reason"], "upstream node \"a\" failed");
}

#[test]
fn arguments_of_nodes_can_be_given_in_place_of_the_manifests() {
    let sandbox = sandbox();
    let given = r#"{"show": {"whole": "typed", "part": 3}}"#;
    run(&sandbox, &["flow", "--id", "r", "--args-json", given, "--label", "L"], 0);
    assert_eq!(sandbox.run(&["logs", "r:show"]).expect(0).out, "typed|3\n");
    assert_eq!(sandbox.status("r:show")["label"], "L/show");
    for (given, word) in [
        (r#"{"shwo": {}}"#, "`show`"),
        (r#"{"show": 1}"#, "object"),
        (r#"{"show": {"x": 1}}"#, "`x`"),
        ("[]", "--args-json"),
    ] {
        let outcome = run(&sandbox, &["flow", "--args-json", given], 1);
        assert!(outcome.err.contains(word), "{outcome:?}");
    }
}

#[test]
fn mistakes_are_told_before_there_is_a_database() {
    let sandbox = sandbox();
    sandbox.write("circle.toml", &format!("{PIPELINES}{CIRCLE}"));
    for args in [&["pipeline", "circle"][..], &["pipeline", "flow"], &["tasks"]] {
        let outcome = sandbox.run(&[args, &["--tasks", "circle.toml"]].concat()).expect(1);
        let told = ["a → b → a", "circle.toml:"].iter().all(|word| outcome.err.contains(word));
        assert!(told, "{args:?}: {outcome:?}");
    }
    let outcome = run(&sandbox, &["flwo"], 1);
    assert!(outcome.err.contains("did you mean `flow`?"), "{outcome:?}");
    let outcome = run(&sandbox, &["flow", "--id", &"x".repeat(252)], 1);
    assert!(outcome.err.contains("255"), "{outcome:?}");
    assert!(!sandbox.path("tasks.db").exists());
}

#[test]
fn a_run_is_never_resumed() {
    let sandbox = sandbox();
    run(&sandbox, &["flow", "--id", "r"], 0);
    let outcome = run(&sandbox, &["flow", "--id", "r"], 1);
    assert!(outcome.err.contains("\"r:n\" exists already"), "{outcome:?}");
}

#[test]
fn signals_stop_every_node_the_clean_up_included() {
    for (signal, trigger) in [("INT", "user:stop"), ("TERM", "runtime:shutdown")] {
        let sandbox = sandbox();
        let running =
            sandbox.start(&["--json", "pipeline", "--tasks", "m.toml", "long", "--id", "r"]);
        sandbox.until("r:nap", "running");
        running.signal(signal);
        let outcome = running.finish().expect(3);
        assert_eq!(statuses(&outcome.json()), ["nap: stopped", "after: stopped"]);
        let history = sandbox.run(&["--json", "history", "r:after"]).json();
        assert_eq!(history[1]["trigger"], trigger);
        assert!(!sandbox.path("done.txt").exists());
    }
}

#[test]
fn a_node_can_be_cancelled_from_outside_and_explained() {
    let sandbox = sandbox();
    let running = sandbox.start(&["--json", "pipeline", "--tasks", "m.toml", "long", "--id", "r"]);
    sandbox.until("r:nap", "running");
    let explained = sandbox.run(&["explain", "r:after"]).expect(0).out;
    assert!(explained.contains("r:nap"), "{explained}");
    sandbox.run(&["cancel", "r:nap", "--wait", "30s"]).expect(0);
    let outcome = running.finish().expect(3);
    assert_eq!(statuses(&outcome.json()), ["nap: cancelled", "after: succeeded"]);
    assert_eq!(outcome.json()["status"], "cancelled");
}

#[test]
fn after_a_crash_reconcile_tells_the_truth_about_every_node() {
    let sandbox = sandbox();
    let args = ["pipeline", "--tasks", "m.toml", "long", "--id", "r", "--lease-ttl", "1s"];
    let running = sandbox.start(&args);
    sandbox.until("r:nap", "running");
    let pid = sandbox.until_written("nap.pid");
    running.crash();
    wait_for("the command to end with its supervisor", || !is_alive(&pid));
    let mut found = json!([]);
    wait_for("the lease to run out", || {
        found = sandbox.run(&["--json", "reconcile"]).expect(0).json();
        found != json!([])
    });
    let told = found.as_array().unwrap().iter().map(|row| {
        format!("{} {} {}", row["task_id"], row["was"], row["outcome"]).replace('"', "")
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    assert_eq!(told, ["r:after blocked adoptable", "r:nap running marked-lost"]);
    assert_eq!(sandbox.status("r:nap")["status"], "lost");
    // Nothing of it goes on by itself, and it is never resumed.
    run(&sandbox, &["long", "--id", "r"], 1);
    assert_eq!(sandbox.status("r:after")["status"], "blocked");
    assert!(!sandbox.path("done.txt").exists());
    sandbox.run(&["cancel", "r:after", "--wait", "30s"]).expect(0);
}

#[test]
fn thousands_of_nodes_are_drawn_and_a_long_circle_is_told() {
    let sandbox = sandbox();
    let node = |n: u32, after: u32| {
        format!("{{ id = \"n:{n}\", task = \"t\", depends_on = [\"n:{after}\"] }},")
    };
    let chain: String = (1..5000).map(|n| node(n, n - 1)).collect();
    let manifest = |first: &str| {
        format!("[tasks.t]\ncommand = ['true']\n[pipelines.p]\nnodes = [{first}{chain}]\n")
    };
    sandbox.write("m.toml", &manifest("{ id = \"n:0\", task = \"t\" },"));
    let drawn = sandbox.run(&["tasks", "--tasks", "m.toml"]).expect(0).out;
    assert_eq!(drawn.lines().count(), 2 + 1 + 1 + 5000);
    sandbox.write("m.toml", &manifest(&node(0, 4999)));
    let outcome = run(&sandbox, &["p"], 1);
    assert!(outcome.err.contains("n:0 → n:4999 → n:4998 → "), "{}", outcome.err.len());
}
