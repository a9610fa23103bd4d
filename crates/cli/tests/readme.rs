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
const PAGES: [&str; 4] =
    ["README.md", "docs/task-protocol.md", "docs/guide.md", "docs/distributed.md"];

/// What is in this part of a page needs a server.
const ON_A_SERVER: &str = "\n## Postgres\n";

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

/// One reader's shell.
struct Terminal<'a> {
    sandbox: &'a Sandbox,
    /// What was exported, as shell lines.
    exported: String,
    background: Vec<Child>,
}

impl<'a> Terminal<'a> {
    fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, exported: String::new(), background: Vec::new() }
    }

    /// Runs one line of a session as a shell would, with both streams in one.
    fn shell(&self, line: &str) -> Command {
        let script = format!("{}exec 2>&1; {line}", self.exported);
        let mut command = self.sandbox.command_of(Path::new("sh"), &["-c", &script]);
        command.stdin(Stdio::null());
        command
    }

    /// After a command in the background: goes on once its task is under way, as a reader would look first.
    fn await_running(&self, line: &str) {
        let id = line.split("--id ").nth(1).unwrap().split(' ').next().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let is_under_way = || {
            let status = self.shell(&format!("chongming-task --json status {id}"));
            let out = support::finish(status).out;
            ["running", "retry_wait"].iter().any(|s| out.contains(&format!("\"status\":\"{s}\"")))
        };
        while !is_under_way() {
            assert!(Instant::now() < until, "{line}: its task never ran");
            std::thread::yield_now();
        }
    }

    fn play(&mut self, session: &str) {
        let mut lines = session.lines().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap();
            let mut expected = Vec::new();
            while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected.push(output.to_owned());
            }
            if command.starts_with("export ") {
                self.exported.push_str(&format!("{command}\n"));
                continue;
            }
            if let Some(command) = command.strip_suffix(" &") {
                let mut child = self.shell(&format!("exec {command}"));
                self.background.push(child.stdout(Stdio::null()).spawn().unwrap());
                self.await_running(command);
                continue;
            }
            let output = self.shell(command).output().unwrap();
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

    /// The reader has gone through the whole page.
    fn leave(&mut self) {
        for child in &mut self.background {
            assert!(!child.wait().unwrap().success(), "a task in the background was to be stopped");
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        for child in &mut self.background {
            let _ = child.kill();
            let _ = child.wait();
        }
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
        let mut terminal = Terminal::new(&sandbox);
        let sessions = blocks(page.split(ON_A_SERVER).next().unwrap(), "console");
        assert!(!sessions.is_empty(), "{name}");
        sessions.into_iter().for_each(|session| terminal.play(session));
        terminal.leave();
    }
}

/// The part about the server, on the server of the tests: its names get an ending of their own, its address and
/// certificate become those that there are.
#[cfg(feature = "postgres")]
mod on_a_server {
    use super::*;
    use postgres::config::Host;
    use postgres::{Client, Config, NoTls};
    use support::schema::{AUTHORITY, server, skipped};

    const TLS: &str = "?sslmode=verify-full&sslrootcert=/etc/ssl/tasks-ca.pem";

    /// What the page makes; dropped at the end.
    struct Made {
        admin: Client,
        prefix: String,
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let prefix = &self.prefix;
            let _ = self.admin.batch_execute(&format!("DROP DATABASE IF EXISTS {prefix}db"));
            for role in ["owner", "node", "reader"] {
                let _ = self.admin.batch_execute(&format!("DROP ROLE IF EXISTS {prefix}{role}"));
            }
        }
    }

    #[test]
    fn the_server_is_set_up_as_the_handbook_says() {
        let dsn = match server() {
            Ok(dsn) => dsn,
            Err(why) => return skipped("the handbook's set-up of a server", &why),
        };
        let config: Config = dsn.parse().unwrap();
        let (Some(Host::Tcp(host)), Some(port)) =
            (config.get_hosts().first(), config.get_ports().first())
        else {
            panic!("the server of the tests has no address: give host and port")
        };
        let prefix = format!("tasks_{}_", std::process::id());
        let (host, terms) = match std::env::var(AUTHORITY) {
            // The certificate of a server of ours is for this name.
            Ok(path) => ("localhost", TLS.replace("/etc/ssl/tasks-ca.pem", &path)),
            Err(_) => (host.as_str(), "?sslmode=disable".to_owned()),
        };
        let page = page("docs/distributed.md");
        let mut made = Made { admin: config.connect(NoTls).unwrap(), prefix: prefix.clone() };
        let part = page.split(ON_A_SERVER).nth(1).unwrap().split("\n## ").next().unwrap();
        assert!(part.contains(TLS));
        let part = part.replace(TLS, &terms).replace("tasks_", &prefix);
        let part = part.replace("@db.example", &format!("@{host}:{port}"));

        let sandbox = Sandbox::new();
        write_files(&sandbox, &page);
        let mut terminal = Terminal::new(&sandbox);
        for block in part.split("```").skip(1).step_by(2) {
            let (language, block) = block.split_once('\n').unwrap();
            match language {
                "console" => terminal.play(block),
                "sql" => {
                    let mut inside = config.clone();
                    inside.dbname(&format!("{prefix}db"));
                    let is_inside = block.starts_with(&format!("-- in {prefix}db"));
                    for statement in block.split_inclusive(";\n") {
                        if is_inside {
                            inside.connect(NoTls).unwrap().batch_execute(statement).unwrap();
                        } else {
                            made.admin.batch_execute(statement).unwrap();
                        }
                    }
                }
                other => panic!("{other}"),
            }
        }
        terminal.leave();
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
                || language == "sql" && name == "docs/distributed.md"
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
