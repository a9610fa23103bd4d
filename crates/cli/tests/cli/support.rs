//! A folder of its own for each test, and the program run in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What is waited for comes at once or never: a generous limit costs nothing.
const LIMIT: Duration = Duration::from_secs(60);

#[cfg(feature = "postgres")]
#[path = "../../../store-postgres/tests/server/schema.rs"]
#[expect(dead_code, reason = "the store's own tests use the rest of it")]
pub(crate) mod schema;

/// Tasks for all tests.
pub(crate) const MANIFEST: &str = r#"
[tasks.ok]
command = ["echo", "all is well"]
[tasks.say]
command = ["printf", "%s\\n", "{x}"]
params = { x = {} }
bucket_key = "{x}"
tags = ["io"]
[tasks.fail]
command = ["sh", "-c", "echo the-reason >&2; exit 7"]
[tasks.nap]
command = ["sh", "-c", "echo $$ > nap.pid; exec sleep 600"]
[tasks.deaf]
command = ["sh", "-c", "trap '' TERM; echo $$ > deaf.pid; while :; do sleep 600; done"]
[tasks.later]
command = ["sh", "-c", "exit 1"]
retry = { max_attempts = 2, backoff = { base = "1h" } }
"#;

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.out) {
            Ok(json) => json,
            Err(error) => panic!("{error}: {self:?}"),
        }
    }

    /// Fails the test unless the program ended like this.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// A fresh folder, and an empty database.
pub(crate) struct Sandbox {
    folder: TempDir,
    /// In place of the file that `--db` names by default.
    #[cfg(feature = "postgres")]
    schema: Option<schema::Schema>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            #[cfg(feature = "postgres")]
            schema: None,
        }
    }

    /// One whose database is on a server; `None`, with a line that says so, where there is no server.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_postgres(test: &str) -> Option<Self> {
        let schema = schema::Schema::fresh(test)?;
        Some(Self { schema: Some(schema), ..Self::with_tasks() })
    }

    /// What `--db` names in this folder.
    pub(crate) fn database(&self) -> String {
        #[cfg(feature = "postgres")]
        if let Some(schema::Schema { dsn, name }) = &self.schema {
            let sign = if dsn.contains('?') { '&' } else { '?' };
            return format!("{dsn}{sign}schema={name}");
        }
        "tasks.db".to_owned()
    }

    /// A folder with [`MANIFEST`] as `m.toml`.
    pub(crate) fn with_tasks() -> Self {
        let sandbox = Self::new();
        sandbox.write("m.toml", MANIFEST);
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program in this folder, untouched by the environment of the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_chongming-task")), args)
    }

    /// Another program likewise.
    pub(crate) fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CHONGMING_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PATH", path_with_program());
        command.env("XDG_STATE_HOME", self.path("state"));
        #[cfg(feature = "postgres")]
        if self.schema.is_some() {
            command.env("CHONGMING_DB", self.database());
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        finish(self.command(args))
    }

    /// Runs a task of the manifest to its end.
    pub(crate) fn run_task(&self, id: &str, args: &[&str]) -> Outcome {
        self.run(&[&["run", "--tasks", "m.toml", "--id", id], args].concat())
    }

    /// Starts a task of the manifest, and waits until it is there.
    pub(crate) fn start_task(&self, id: &str, args: &[&str], status: &str) -> Running {
        let running = self.start(&[&["run", "--tasks", "m.toml", "--id", id], args].concat());
        self.until(id, status);
        running
    }

    /// Starts the program.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_program(Path::new(env!("CARGO_BIN_EXE_chongming-task")), args)
    }

    /// Starts another program likewise.
    pub(crate) fn start_program(&self, program: &Path, args: &[&str]) -> Running {
        let mut command = self.command_of(program, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    /// The task as `status` shows it.
    pub(crate) fn status(&self, id: &str) -> Value {
        self.run(&["--json", "status", id]).json()
    }

    /// Waits until the task is in this state.
    #[track_caller]
    pub(crate) fn until(&self, id: &str, status: &str) {
        wait_for(&format!("{id} to be {status}"), || {
            let outcome = self.run(&["--json", "status", id]);
            outcome.code != Some(1) && outcome.json()["status"] == status
        });
    }

    /// Waits for what a task writes to a file.
    #[track_caller]
    pub(crate) fn until_written(&self, name: &str) -> String {
        let read = || std::fs::read_to_string(self.path(name)).unwrap_or_default();
        wait_for(name, || read().ends_with('\n'));
        read().trim().to_owned()
    }
}

/// A program that runs; ended with the test.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Sends it a signal, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args(["-s", name, &self.pid()]).status();
        assert!(kill.unwrap().success());
    }

    /// Kills it, as a crash would.
    pub(crate) fn crash(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> String {
        self.0.as_ref().unwrap().id().to_string()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Outcome {
        outcome(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Is the process there, and more than a zombie?
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// An example of this crate; `cargo test` without a choice of targets and `cargo xtask test` build it.
pub(crate) fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_chongming-task")).parent().unwrap();
    let program = folder.join("examples").join(name);
    assert!(program.exists(), "build it: cargo build -p chongming-task --examples");
    program
}

/// Where the tasks of a test find the program too.
pub(crate) fn path_with_program() -> OsString {
    let folder = Path::new(env!("CARGO_BIN_EXE_chongming-task")).parent().unwrap();
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Outcome {
    outcome(command.output().unwrap())
}

fn outcome(output: std::process::Output) -> Outcome {
    let outcome = Outcome {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    if outcome.err.contains("panicked at") {
        panic!("the program panicked: {outcome:?}");
    }
    outcome
}
