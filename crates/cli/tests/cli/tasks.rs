//! `tasks`.

use crate::support::Sandbox;

const MANIFEST: &str = r#"
[tasks.sync]
command = ["sync", "{tenant}", "{day}"]
params = { tenant = { help = "whose" }, day = { default = "today" } }
tags = ["io", "gpu"]
retry = { max_attempts = 3 }
[tasks.load]
command = ["load"]
[pipelines.nightly]
nodes = [ { id = "s", task = "sync", args = { tenant = "A" } }, { id = "l", task = "load", depends_on = ["s"] } ]
"#;

#[test]
fn definitions_are_listed_in_the_order_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("m.toml", MANIFEST);
    let outcome = sandbox.run(&["tasks", "--tasks", "m.toml"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(
        outcome.out,
        "NAME  PARAMS            TAGS    COMMAND\n\
         sync  tenant day=today  io,gpu  sync {tenant} {day}\n\
         load  -                 -       load\n\
         \n\
         PIPELINE  NODE  TASK  DEPENDS_ON  JOIN\n\
         nightly   s     sync  -           -\n\
         \x20         l     load  s           all_succeeded\n"
    );
}

#[test]
fn json_has_every_parameter() {
    let sandbox = Sandbox::new();
    sandbox.write("m.toml", MANIFEST);
    let outcome = sandbox.run(&["--json", "tasks", "--tasks", "m.toml"]);
    let list: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    let sync = list.get(0).unwrap();
    assert_eq!(
        *sync,
        serde_json::json!({
            "name": "sync",
            "params": [
                {"name": "tenant", "required": true, "default": null, "help": "whose"},
                {"name": "day", "required": false, "default": "today", "help": null},
            ],
            "tags": ["io", "gpu"],
            "bucket_key": null,
            "priority": 0,
            "max_attempts": 3,
            "command": ["sync", "{tenant}", "{day}"],
        })
    );
}

#[test]
fn a_manifest_with_a_mistake_is_located() {
    let sandbox = Sandbox::new();
    sandbox.write("m.toml", "[tasks.a]\ncommand = ['true']\nretrys = { max_attempts = 2 }\n");
    let outcome = sandbox.run(&["tasks", "--tasks", "m.toml"]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(
        outcome.err,
        "error: m.toml:3:1: `tasks.a.retrys` is an unknown key; did you mean `retry`?\n"
    );
    let outcome = sandbox.run(&["tasks", "--tasks", "missing.toml"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("missing.toml"), "{outcome:?}");
}
