//! The example task modules in other languages.

use crate::support::{Outcome, Running, Sandbox, wait_for};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn run(sandbox: &Sandbox, module: &str, args: &[&str]) -> Outcome {
    let manifest = format!("{EXAMPLES}/{module}/tasks.toml");
    sandbox.run(&[&["--json", "run", "--tasks", &manifest, "--id", "t"], args].concat())
}

fn start(sandbox: &Sandbox, module: &str, args: &[&str]) -> Running {
    let manifest = format!("{EXAMPLES}/{module}/tasks.toml");
    let running = sandbox.start(&[&["run", "--tasks", &manifest, "--id", "t"], args].concat());
    sandbox.until("t", "running");
    running
}

#[test]
fn python_takes_arguments_and_returns_a_result() {
    let sandbox = Sandbox::new();
    let task = run(&sandbox, "python", &["primes", "--arg", "limit=5000"]).expect(0).json();
    assert_eq!(task["value"], serde_json::json!({"primes": 669, "largest": 4999}));
    assert_eq!(
        task["progress"],
        serde_json::json!({"done": 5000, "total": 5000, "unit": "numbers", "message": null})
    );
    assert_ne!(task["last_heartbeat_at"], serde_json::Value::Null);
}

#[test]
fn python_pauses_goes_on_and_stops_by_itself() {
    let sandbox = Sandbox::new();
    let running = start(&sandbox, "python", &["primes", "--arg", "limit=1000000000"]);
    // By then it has said hello; before, a stop is a signal.
    wait_for("progress", || !sandbox.status("t")["progress"].is_null());
    for _ in 0..2 {
        sandbox.run(&["pause", "t", "--wait", "60s"]).expect(0);
        assert_eq!(sandbox.status("t")["status"], "paused");
        sandbox.run(&["resume", "t", "--wait", "60s"]).expect(0);
    }
    sandbox.run(&["stop", "t", "--reason", "enough", "--wait", "60s"]).expect(0);
    running.finish().expect(3);
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    assert!(log.starts_with("[warn] stopped at ") && log.ends_with(": enough\n"), "{log}");
}

#[test]
fn python_says_why_it_failed() {
    let sandbox = Sandbox::new();
    let task = run(&sandbox, "python", &["primes", "--arg", "limit=ten"]).expect(3).json();
    assert_eq!(
        task["failure"],
        serde_json::json!({
            "kind": "exception", "message": "limit is no number: 'ten'", "retryable": false,
        })
    );
}

#[test]
fn shell_counts_lines_by_report() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("texts")).unwrap();
    for (name, text) in [("a b", "1\n2\n"), ("c", "3\n"), ("d", "")] {
        sandbox.write(&format!("texts/{name}"), text);
    }
    let folder = format!("folder={}", sandbox.path("texts").display());
    let task = run(&sandbox, "shell", &["lines", "--arg", &folder]).expect(0).json();
    assert_eq!(task["value"], serde_json::json!({"files": 3, "lines": 3}));
    assert_eq!(
        task["progress"],
        serde_json::json!({"done": 3, "total": 3, "unit": "files", "message": null})
    );
    assert_ne!(task["last_heartbeat_at"], serde_json::Value::Null);
}

#[test]
fn shell_says_why_it_failed_and_cleans_up_when_it_is_stopped() {
    let sandbox = Sandbox::new();
    let task = run(&sandbox, "shell", &["lines", "--arg", "folder=/nonesuch"]).expect(3).json();
    assert_eq!(task["failure"]["message"], "there are no files");
    assert_eq!(task["failure"]["retryable"], false);

    // The second file is a pipe that nobody writes to: there it waits until it is stopped.
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("texts")).unwrap();
    sandbox.write("texts/a", "1\n");
    let fifo = sandbox.path("texts/b");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let folder = format!("folder={}", sandbox.path("texts").display());
    let running = start(&sandbox, "shell", &["lines", "--arg", &folder]);
    wait_for("the second file", || sandbox.status("t")["progress"]["done"] == 1);
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    running.finish().expect(3);
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    assert!(log.ends_with("[warn] stopped after 1 files\n"), "{log}");
}
