//! The sessions of the README and of the handbook, run as a reader would: in an empty folder, with the commands and
//! files that a page shows.
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

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

fn readme() -> String {
    page("README.md")
}

/// Pages with sessions.
const PAGES: [&str; 3] = ["README.md", "docs/task-protocol.md", "docs/guide.md"];

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

/// Writes the files that a page shows: blocks whose first line is `# NAME`.
fn write_files(sandbox: &Sandbox, page: &str) {
    for language in ["toml", "sh", "python"] {
        for block in blocks(page, language) {
            let first = block.lines().next().unwrap_or_default();
            if let Some(name) = first.strip_prefix("# ").filter(|name| !name.contains(' ')) {
                sandbox.write(name, &format!("{block}\n"));
            }
        }
    }
}

#[test]
fn the_sessions_are_true() {
    for name in PAGES {
        let (page, sandbox) = (page(name), Sandbox::new());
        write_files(&sandbox, &page);
        let mut background = Vec::new();
        let sessions = blocks(&page, "console");
        assert!(!sessions.is_empty(), "{name}");
        for session in sessions {
            play(&sandbox, session, &mut background);
        }
        for mut child in background {
            assert!(!child.wait().unwrap().success(), "{name}: its task was stopped");
        }
    }
}

/// A block that nothing runs would be true by chance only.
#[test]
fn every_block_of_the_handbook_is_run_or_shown_by_a_test() {
    for name in PAGES {
        let page = page(name);
        let fences = page.lines().filter_map(|line| line.strip_prefix("```"));
        for language in fences.step_by(2).filter(|_| name != "README.md") {
            let is_run = ["toml", "sh", "python", "console"].contains(&language)
                || language == "rust"
                || language.starts_with("rust,no_run");
            assert!(is_run, "{name}: ```{language}");
        }
        for language in ["toml", "sh", "python"].iter().filter(|_| name != "README.md") {
            for block in blocks(&page, language) {
                assert!(block.starts_with("# "), "{name}: a file without its name: {block}");
            }
        }
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
    let heading = |line: &str| -> Option<String> {
        let text = line.strip_prefix('#')?.trim_start_matches('#').trim().to_lowercase();
        Some(
            text.chars()
                .filter(|c| c.is_alphanumeric() || "- ".contains(*c))
                .collect::<String>()
                .replace(' ', "-"),
        )
    };
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for path in docs.chain([root().join("README.md")]) {
        let (text, name) = (std::fs::read_to_string(&path).unwrap(), path.display());
        let prose = text.split("```").step_by(2);
        let links = prose.flat_map(|prose| prose.split("](").skip(1));
        for target in links.map(|rest| rest.split(')').next().unwrap()) {
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(file.exists(), "{name}: {target}");
            let there = std::fs::read_to_string(&file).unwrap_or_default();
            let is_there =
                fragment.is_empty() || there.lines().filter_map(heading).any(|h| h == fragment);
            assert!(is_there, "{name}: {target}");
        }
    }
}
