//! The README's sessions, run as a reader would: in an empty folder, with the commands that it shows.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers outside of test functions"
)]

#[path = "cli/support.rs"]
#[expect(dead_code, reason = "the verbs' tests use the rest of it")]
mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::Sandbox;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The fenced blocks of this language, in order.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// Does the text fit the pattern, in which `[..]` stands for anything within a line?
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap()) else { return false };
    let parts: Vec<_> = parts.collect();
    for (i, part) in parts.iter().enumerate() {
        let found = if i + 1 == parts.len() { rest.rfind(part) } else { rest.find(part) };
        match found {
            Some(at) if i + 1 < parts.len() || at + part.len() == rest.len() => {
                rest = &rest[at + part.len()..];
            }
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Runs one line of a session as a shell would, with both streams in one.
fn shell(sandbox: &Sandbox, line: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_chongming-task"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(sandbox.path("."));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CHONGMING_") {
            command.env_remove(name);
        }
    }
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// After a command in the background: goes on once its task runs, as a reader would look first.
fn await_running(sandbox: &Sandbox, line: &str) {
    let id = line.split("--id ").nth(1).unwrap().split(' ').next().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !sandbox.run(&["--json", "status", id]).out.contains("\"status\":\"running\"") {
        assert!(Instant::now() < until, "{line}: its task never ran");
        std::thread::yield_now();
    }
}

fn play(sandbox: &Sandbox, session: &str, background: &mut Vec<Child>) {
    let mut lines = session.lines().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").unwrap();
        let mut expected = Vec::new();
        while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
            expected.push(output.to_owned());
        }
        if let Some(command) = command.strip_suffix(" &") {
            let child = shell(sandbox, &format!("exec {command}")).stdout(Stdio::null()).spawn();
            background.push(child.unwrap());
            await_running(sandbox, command);
            continue;
        }
        let output = shell(sandbox, command).output().unwrap();
        let mut seen: Vec<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        match output.status.code() {
            Some(0) => {}
            code => seen.push(format!("[exit {}]", code.unwrap())),
        }
        let all = expected.len() == seen.len()
            && expected.iter().zip(&seen).all(|(pattern, line)| fits(pattern, line));
        assert!(all, "$ {command}\nexpected {expected:#?}\nseen {seen:#?}");
    }
}

#[test]
fn the_sessions_are_true() {
    let (page, sandbox) = (readme(), Sandbox::new());
    let manifest = blocks(&page, "toml");
    assert_eq!(manifest.len(), 1);
    sandbox.write("tasks.toml", manifest[0]);
    let mut background = Vec::new();
    for session in blocks(&page, "console") {
        play(&sandbox, session, &mut background);
    }
    for mut child in background {
        assert!(!child.wait().unwrap().success(), "its task was stopped");
    }
}

#[test]
fn the_example_is_the_manifest_shown() {
    let example = std::fs::read_to_string(root().join("examples/tasks.toml")).unwrap();
    assert_eq!(example.trim(), blocks(&readme(), "toml")[0].trim());
}

#[test]
fn ci_runs_the_command_of_the_readme() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let command = "cargo xtask test";
    assert!(blocks(&readme(), "sh").iter().any(|block| block.trim() == command));
    assert!(script.lines().any(|line| line.trim() == command));
}

#[test]
fn links_lead_somewhere() {
    for target in readme().split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(root().join(target).exists(), "{target}");
    }
}
