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

/// What the executor would refuse at each launch is refused before there is a task.
#[test]
#[cfg(feature = "process")]
fn a_command_that_can_never_run_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let manifest = "[tasks.a]\ncommand = ['true']\nenv = { CHONGMING_SUPERVISOR = 'x' }\n";
    sandbox.write("bad.toml", manifest);
    for args in [&["tasks", "--tasks", "bad.toml"][..], &["run", "--tasks", "bad.toml", "a"]] {
        let outcome = sandbox.run(args).expect(1);
        let words = "bad.toml:3:9: `tasks.a.env.CHONGMING_SUPERVISOR` is reserved";
        assert!(outcome.err.contains(words), "{outcome:?}");
    }
    let manifest = "[tasks.a]\ncommand = ['echo', '{x}']\nparams = { x = {} }\n";
    sandbox.write("m.toml", manifest);
    let nul = r#"{"x": "a\u0000b"}"#;
    let outcome = sandbox.run(&["run", "--tasks", "m.toml", "a", "--args-json", nul]).expect(1);
    assert!(outcome.err.contains("`x` of task `a` has a NUL"), "{outcome:?}");
    assert!(!sandbox.path("tasks.db").exists());
}

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
         PIPELINE  GRAPH  NODE  TASK  DEPENDS_ON  JOIN\n\
         nightly   ○      s     sync  -           -\n\
         \x20         ●      l     load  s           all_succeeded\n"
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

#[test]
fn pipelines_are_drawn_and_graphviz_reads_them() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "m.toml",
        r#"
[tasks.t]
command = ["true"]
[pipelines."say \"hi\" \\"]
nodes = [
  { id = "取", task = "t" },
  { id = "a", task = "t", depends_on = ["取"] },
  { id = "\" -> x; \"", task = "t", depends_on = ["取"], join = "all_settled" },
  { id = "z", task = "t", depends_on = ["a", "\" -> x; \""], join = "any_succeeded" },
]
"#,
    );
    let drawn = sandbox.run(&["tasks", "--tasks", "m.toml"]).expect(0).out;
    for line in ["○      取 ", "├─●    a ", "● │    \" -> x; \"", "●─┘    z "] {
        assert!(drawn.contains(line), "{drawn}");
    }
    let dot = sandbox.run(&["tasks", "--tasks", "m.toml", "--dot"]).expect(0).out;
    let tokens = dot_tokens(&dot);
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    assert_eq!(words[..2], ["digraph", "{"]);
    assert_eq!(words.iter().filter(|word| **word == "{").count(), 2);
    assert_eq!(words.iter().filter(|word| **word == "}").count(), 2);
    for label in ["\"say \"hi\" \\", "\"取\\nt", "\"a\\nt", "\"\" -> x; \"\\nt"] {
        assert!(words.contains(&label), "{label}: {words:?}");
    }
    let edges = words.windows(7).filter(|window| window[1] == "->");
    let edges: Vec<String> =
        edges.map(|edge| format!("{}>{} {}", edge[0], edge[2], edge[6])).collect();
    assert_eq!(
        edges,
        ["n0_0>n0_1 solid", "n0_0>n0_2 dashed", "n0_1>n0_3 dotted", "n0_2>n0_3 dotted",]
    );
}

/// Reads the language of Graphviz: words, signs, and quoted texts (as `"` and what they say).
fn dot_tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let mut word = String::from('"');
                loop {
                    match chars.next().unwrap() {
                        '"' => break,
                        // A quote or a backslash is itself; any other escape is kept for the label.
                        '\\' => match chars.next().unwrap() {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
                tokens.push(word);
            }
            '-' => tokens.push(format!("-{}", chars.next().unwrap())),
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                tokens.push(word);
            }
            c => tokens.push(c.to_string()),
        }
    }
    tokens
}
