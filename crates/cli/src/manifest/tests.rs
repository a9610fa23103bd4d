//! The manifest as a whole: what is read, and where mistakes are found.

use std::path::Path;
use std::time::Duration;

use chongming_core::{Backoff, FailureKind, RetryPolicy, Timeout, Value};
use chongming_pipeline::{Aggregation, Join};

use super::pipeline::NodeArgument;
use super::*;

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(Path::new("tasks.toml"), text)
}

/// The problems of a manifest, one to a line, without the file's name.
fn problems(text: &str) -> String {
    let error = parse(text).expect_err(text);
    error.problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// Checks that a manifest has exactly one problem, at `place`, and that it says `words`.
#[track_caller]
fn check(text: &str, place: &str, words: &[&str]) {
    let told = problems(text);
    assert_eq!(told.lines().count(), 1, "{text}\n{told}");
    assert!(told.starts_with(&format!("{place}: ")), "{text}\nwanted {place}: {told}");
    for word in words {
        assert!(told.contains(word), "{text}\nwanted {word:?}: {told}");
    }
}

/// Checks one key of a task, which begins at line 3.
#[track_caller]
fn check_task(line: &str, column: usize, words: &[&str]) {
    let text = format!("[tasks.a]\ncommand = [\"true\"]\n{line}\n");
    check(&text, &format!("3:{column}"), words);
}

const EVERYTHING: &str = r#"
max_parallel = 4
max_parallel_per_bucket = 1
resources = { gpu = 1 }
artifacts = "out"

[tasks.sync]
command  = ["python3", "sync.py", "--tenant", "{tenant}", "{{x}}"]
params   = { tenant = { help = "whose" }, day = { default = "today" }, n = { default = 3 } }
tags     = ["io", "gpu", "io"]
bucket_key = "{tenant}"
priority = -2
retry    = { max_attempts = 3, backoff = { base = "1s", factor = 2, max = "1m", jitter = 0.5 }, retry_on = ["exit_code"] }
timeout  = { start = "5m", per_attempt = "30m", idle = "60s" }
grace = "0s"
cwd = "."
env = { MODE = "full-{day}" }
max_log_bytes = 1_000_000

[tasks.load]
command = ["load", "{from}"]
params = { from = {} }
retry = { max_attempts = 2, backoff = { base = "1s" } }

[pipelines.nightly]
aggregation = "all_settled"
nodes = [
  { id = "fetch", task = "sync", args = { tenant = "A", n = 7 } },
  { id = "load", task = "load", args = { from = "{fetch.value}" }, depends_on = ["fetch"], join = "any_succeeded", priority = 1, bucket_key = "k", retry = { max_attempts = 1 }, timeout = { idle = "1s" } },
]
"#;

#[test]
fn every_key_is_read() {
    let manifest = parse(EVERYTHING).unwrap();
    assert_eq!(manifest.max_parallel, NonZeroU32::new(4));
    assert_eq!(manifest.max_parallel_per_bucket, NonZeroU32::new(1));
    assert_eq!(manifest.resources.get("gpu"), NonZeroU32::new(1).as_ref());
    assert_eq!(manifest.artifacts.as_deref(), Some(Path::new("out")));
    assert_eq!(manifest.folder(), Path::new("."));

    let sync = manifest.task("sync").unwrap();
    assert_eq!(sync.command.len(), 5);
    assert_eq!(
        sync.params.iter().map(|p| (p.name.as_str(), p.default.clone())).collect::<Vec<_>>(),
        [("tenant", None), ("day", Some(Value::from("today"))), ("n", Some(Value::from(3)))]
    );
    assert_eq!(sync.params[0].help.as_deref(), Some("whose"));
    assert_eq!(sync.tags, ["io", "gpu"]);
    assert_eq!(sync.bucket_key.as_ref().unwrap().source(), "{tenant}");
    assert_eq!(sync.priority, Some(-2));
    let second = Duration::from_secs(1);
    assert_eq!(
        sync.retry,
        Some(RetryPolicy {
            max_attempts: NonZeroU32::new(3).unwrap(),
            backoff: Backoff::Exponential {
                base: second,
                factor: 2.0,
                max: 60 * second,
                jitter: 0.5
            },
            retry_on: Some(vec![FailureKind::ExitCode]),
        })
    );
    assert_eq!(
        sync.timeout,
        Some(Timeout {
            start: Some(300 * second),
            per_attempt: Some(1800 * second),
            idle: Some(60 * second)
        })
    );
    assert_eq!(sync.grace, Some(Duration::ZERO));
    assert_eq!(sync.cwd.as_deref(), Some(Path::new(".")));
    assert_eq!(sync.env["MODE"].source(), "full-{day}");
    assert_eq!(sync.max_log_bytes, Some(1_000_000));
    let load = manifest.task("load").unwrap();
    assert_eq!(load.retry.as_ref().unwrap().backoff, Backoff::Fixed(second));

    let nightly = manifest.pipeline("nightly").unwrap();
    assert_eq!(nightly.aggregation, Aggregation::AllSettled);
    let [fetch, load] = nightly.nodes.as_slice() else { panic!("two nodes") };
    assert_eq!(fetch.args["n"], NodeArgument::Value(Value::from(7)));
    assert_eq!((fetch.join, fetch.depends_on.len()), (Join::AllSucceeded, 0));
    assert_eq!(
        (load.join, load.depends_on.as_slice()),
        (Join::AnySucceeded, &["fetch".into()][..])
    );
    assert!(
        matches!(&load.args["from"], NodeArgument::Template(t) if t.source() == "{fetch.value}")
    );
    assert_eq!(load.retry.as_ref().unwrap().backoff, Backoff::None);
}

#[test]
fn an_empty_manifest_has_nothing_but_is_right() {
    let manifest = parse("").unwrap();
    assert!(manifest.tasks.is_empty() && manifest.pipelines.is_empty());
    let error = manifest.task("x").unwrap_err();
    assert!(error.message.contains("tasks.toml"), "{error}");
}

#[test]
fn a_wrong_name_brings_the_nearest() {
    let error = parse(EVERYTHING).unwrap().task("snyc").unwrap_err();
    assert!(error.message.contains("snyc"), "{error}");
    assert_eq!(error.hints, ["did you mean `sync`?"]);
}

#[test]
fn what_is_no_toml_is_located() {
    check("x = = 1\n", "1:5", &["not valid TOML"]);
    check("[tasks.a]\ncommand = [\"true\"]\ncommand = []\n", "3:1", &["duplicate"]);
    let deep = format!("x = {}{}", "[".repeat(9999), "]".repeat(9999));
    assert!(!problems(&deep).is_empty());
}

#[test]
fn unknown_keys_bring_the_nearest() {
    check_task("retrys = { max_attempts = 2 }", 1, &["tasks.a.retrys", "did you mean `retry`?"]);
    check_task("zzz = 1", 1, &["tasks.a.zzz", "max_log_bytes"]);
    check_task("timeout = { idel = \"1s\" }", 13, &["tasks.a.timeout.idel", "`idle`"]);
    check_task("retry = { max_attempts = 1, x = 1 }", 29, &["tasks.a.retry.x"]);
    check("max_paralel = 1", "1:1", &["`max_paralel`", "`max_parallel`"]);
}

#[test]
fn commands_are_checked() {
    check("[tasks.a]\n", "1:1", &["tasks.a", "no `command`"]);
    check("[tasks.a]\ncommand = []\n", "2:11", &["names no program"]);
    check("[tasks.a]\ncommand = [\"\"]\n", "2:11", &["names no program"]);
    check("[tasks.a]\ncommand = \"ls -l\"\n", "2:11", &["no shell"]);
    check("[tasks.a]\ncommand = [\"ls\", 1]\n", "2:18", &["tasks.a.command[1]", "not an integer"]);
    check("[tasks.a]\ncommand = [\"a\\u0000\"]\n", "2:12", &["NUL"]);
    check("[tasks.a]\ncommand = [\"a\", \"{nope}\"]\n", "2:17", &["{nope}", "no parameter"]);
    check("[tasks.a]\ncommand = [\"a\", \"{x\"]\n", "2:17", &["`{` has no `}`"]);
    check("[tasks.a]\ncommand = [\"a\", \"{b.value}\"]\n", "2:17", &["pipeline"]);
    let near = "[tasks.a]\ncommand = [\"a\", \"{tenent}\"]\nparams = { tenant = {} }\n";
    check(near, "2:17", &["did you mean {tenant}?"]);
}

#[test]
fn task_keys_are_checked() {
    check_task("priority = 99999999999", 12, &["tasks.a.priority"]);
    check_task("priority = 1.5", 12, &["an integer", "not a float"]);
    check_task("max_log_bytes = -1", 17, &["at least 0"]);
    check_task("grace = 5", 9, &["in quotes"]);
    check_task("grace = \"5 parsecs\"", 9, &["5 parsecs", "30s"]);
    check_task("tags = [\"\"]", 9, &["tags[0]", "is empty"]);
    check_task("tags = \"io\"", 8, &["list of strings"]);
    check_task("cwd = \"\"", 7, &["is empty"]);
    check_task("bucket_key = \"\"", 14, &["is empty"]);
    check_task("bucket_key = \"{x}\"", 14, &["no parameter"]);
    check_task("env = { \"A=B\" = \"x\" }", 9, &["environment variable"]);
    check_task("env = { \"\" = \"x\" }", 9, &["environment variable"]);
    check_task("env = { \"A\\u0000\" = \"x\" }", 9, &["environment variable"]);
    check_task("env = { A = \"x\\u0000\" }", 13, &["NUL"]);
    check_task("env = { A = 1 }", 13, &["a string in quotes"]);
    for line in ["env = { A = \"{n}\" }", "bucket_key = \"{n}\""] {
        let text = format!(
            "[tasks.a]\ncommand = [\"true\"]\n{line}\nparams = {{ n = {{ default = \"a\\u0000\" }} }}\n"
        );
        let told = problems(&text);
        assert!(told.starts_with("3:") && told.contains("{n}, whose default has a NUL"), "{told}");
    }
    check_task("params = { \"a b\" = {} }", 12, &["cannot be used"]);
    check_task("params = { a = \"x\" }", 16, &["{ default = "]);
    check_task("params = { a = { defualt = 1 } }", 18, &["`default`"]);
    check_task("params = { a = { default = 2020-01-01 } }", 28, &["date"]);
    check_task("params = { a = { default = nan } }", 28, &["finite"]);
    check_task("params = { a = { default = 99999999999999999999 } }", 28, &["64 bits"]);
}

#[test]
fn policies_are_checked() {
    for (line, column, words) in [
        ("retry = { max_attempts = 0 }", 26, ["max_attempts", "at least 1"]),
        ("retry = { max_attempts = -1 }", 26, ["-1", "at least 1"]),
        ("retry = {}", 9, ["tasks.a.retry", "no `max_attempts`"]),
        (
            "retry = { max_attempts = 2, retry_on = [\"exitcode\"] }",
            41,
            ["exitcode", "`exit_code`"],
        ),
        ("retry = { max_attempts = 2, retry_on = [\"lost\"] }", 41, ["lost", "never retried"]),
        ("retry = { max_attempts = 2, retry_on = [] }", 9, ["retry", "nothing"]),
        ("retry = { max_attempts = 2, backoff = {} }", 39, ["backoff", "no `base`"]),
        ("retry = { max_attempts = 2, backoff = \"1s\" }", 39, ["backoff", "a table"]),
        ("timeout = { idle = \"0s\" }", 20, ["idle", "longer than zero"]),
        ("timeout = { idle = \"-1s\" }", 20, ["idle", "not a duration"]),
        ("timeout = { idle = \"99999999999d\" }", 20, ["idle", "hundred years"]),
    ] {
        check_task(line, column, &words);
    }
    for (keys, words) in [
        ("factor = 0.5", "at least 1"),
        ("factor = nan", "finite"),
        ("factor = inf", "finite"),
        ("factor = 2, max = \"1ms\"", "shorter than `base`"),
        ("factor = 2, jitter = 1.5", "from 0 to 1"),
        ("factor = 2, jitter = -0.1", "from 0 to 1"),
        ("factor = true", "a number"),
        ("max = \"1m\"", "add `factor`"),
        ("jitter = 0.5", "add `factor`"),
    ] {
        let text = format!(
            "[tasks.a]\ncommand = [\"true\"]\nretry = {{ max_attempts = 2, backoff = {{ base = \"1s\", {keys} }} }}\n"
        );
        let told = problems(&text);
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.starts_with("3:") && told.contains(words), "{keys}: {told}");
    }
}

#[test]
fn names_and_limits_are_checked() {
    check("[tasks.\"a\\nb\"]\ncommand = [\"true\"]\n", "1:8", &["bad name", "control character"]);
    check("[tasks.\"\"]\ncommand = [\"true\"]\n", "1:8", &["bad name", "is empty"]);
    let long = format!("[tasks.{}]\ncommand = [\"true\"]\n", "x".repeat(256));
    check(&long, "1:8", &["256 bytes"]);
    check("max_parallel = 0", "1:16", &["at least 1"]);
    check("max_parallel = 4294967296", "1:16", &["not too large"]);
    check("resources = { gpu = 0 }", "1:21", &["resources.gpu", "at least 1"]);
    check("tasks = 1", "1:9", &["a table"]);
}

#[test]
fn pipelines_are_checked() {
    // A task `t` without parameters, and a task `p` whose bucket comes from its parameter `n`.
    const TASKS: &str = "[tasks.t]\ncommand = ['true']\n[tasks.p]\ncommand = ['x', '{n}']\nparams = { n = {} }\nbucket_key = '{n}'\n";
    /// The problem is where `at` stands for the last time in `nodes`.
    #[track_caller]
    fn check_nodes(nodes: &str, at: &str, words: &[&str]) {
        let column = 1 + "nodes = [".len() + nodes.rfind(at).unwrap();
        let text = format!("{TASKS}[pipelines.p]\nnodes = [{nodes}]\n");
        check(&text, &format!("8:{column}"), words);
    }
    check(&format!("{TASKS}[pipelines.p]\nnodes = []"), "8:9", &["pipelines.p.nodes", "empty"]);
    check_nodes("{id='a',task='t'},{id='a',task='t'}", "'a'", &["nodes[1].id", "`a`"]);
    check_nodes("{id='a',task='t',depends_on=['zz']}", "'zz'", &["`zz`", "no node"]);
    check_nodes("{id='a',task='t',depends_on=['a']}", "'a'", &["`a` itself"]);
    check_nodes(
        "{id='z',task='t'},{id='a',task='t',depends_on=['b','z']},{id='b',task='t',depends_on=['a']}",
        "'a',task",
        &["circle", "a → b → a"],
    );
    check_nodes("{id='a',task='nope'}", "'nope'", &["`nope`", "no task"]);
    check_nodes("{id='a',task='t',join='quorum'}", "'quorum'", &["quorum", "refused"]);
    check_nodes("{id='a',task='t',join='all'}", "'all'", &["all_succeeded"]);
    check_nodes("{id='a',task='t',args={x=1}}", "{x", &["`x`", "does not take"]);
    check_nodes("{id='a',task='p'}", "{", &["does not give `n`"]);
    check_nodes("{id='a',task='p',args={n='{x}'},bucket_key='k'}", "'{x}'", &["no parameters"]);
    check_nodes("{id='a'}", "{", &["no `task`"]);
    check_nodes("{id='a',task='t',retyr=1}", "retyr", &["`retry`"]);
    check_nodes("{id=\"a\\u0000\",task='t'}", "\"a", &["nodes[0].id", "control character"]);
    check_nodes(
        "{id='a',task='t'},{id='b',depends_on=['a','a'],task='t'}",
        "'a'",
        &["second time"],
    );
    let upstream = "{id='u',task='t'},{id='m',task='t',depends_on=['u']},";
    let text = |rest: &str| format!("{upstream}{{id='a',task='p',{rest}}}");
    check_nodes(
        &text("depends_on=['m'],args={n='{u.value}'},bucket_key='k'"),
        "'{u.value}'",
        &["`u` is no direct upstream"],
    );
    check_nodes(
        &text("depends_on=['u'],args={n='{u.value}'}"),
        "{id",
        &["takes its bucket from {n}"],
    );
    check_nodes(
        &text("depends_on=['u'],args={n='v'},bucket_key='{u.value}'"),
        "'{u.value}'",
        &["before any node has a result"],
    );
}

#[test]
fn all_problems_are_told_at_once_in_order() {
    let told = problems("x = 1\n[tasks.a]\ncommand = []\n[tasks.b]\n[pipelines.p]\nnodes = []\n");
    let lines: Vec<&str> = told.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(lines, ["1", "3", "4", "6"], "{told}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        Manifest::load(&path).unwrap_err().message.to_owned()
    };
    assert!(load("missing.toml", None).contains("missing.toml"));
    let told = load("bad.toml", Some(b"a = 1\nb = \"\xff\"\n"));
    assert!(told.contains("bad.toml") && told.contains("line 2, column 6"), "{told}");
    let told = load("wrong.toml", Some(b"x = 1\n"));
    assert!(told.contains("wrong.toml:1:1:"), "{told}");
    let told = Manifest::load(folder.path()).unwrap_err();
    assert!(told.message.contains("cannot read"), "{told}");
}
