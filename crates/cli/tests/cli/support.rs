//! A folder of its own for each test, and the program run in it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A fresh folder.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_chongming-task"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CHONGMING_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        finish(self.command(args))
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
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
