//! `pipeline`.

use serde_json::{Value, json};

use crate::support::Sandbox;

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
    let outcome = run(&sandbox, &["circle"], 1);
    assert!(outcome.err.contains("a → b → a") && outcome.err.contains("m.toml"), "{outcome:?}");
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
    assert!(outcome.err.contains("\"r:read\" exists already"), "{outcome:?}");
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
