//! How the parts are started: this same program, under another name or with other words.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::body;
use crate::store::Database;

/// What this program is called when it plays the command line.
pub(crate) const COMMAND_LINE: &str = "chongming-task";

/// What it is called when the command line's executor runs it again as its guardian.
pub(crate) const GUARDIAN: &str = "chongming-guardian";

/// What every part is told.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) database: Database,
    pub(crate) lease: Duration,
}

impl Programs {
    /// Writes the manifest, and knows the rest.
    pub(crate) fn new(folder: &Path, database: Database, lease: Duration) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let programs = Self { program, folder: folder.to_owned(), database, lease };
        let manifest = body::manifest(&programs.program.display().to_string());
        let written = std::fs::write(programs.manifest(), manifest)
            .and_then(|()| std::fs::create_dir(programs.said()));
        written.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(programs)
    }

    fn manifest(&self) -> PathBuf {
        self.folder.join("tasks.toml")
    }

    /// Where programs' words are kept, two files for each.
    pub(crate) fn said(&self) -> PathBuf {
        self.folder.join("said")
    }

    /// What it wrote to its standard output.
    pub(crate) fn output_of(&self, name: &str) -> String {
        std::fs::read_to_string(self.said().join(format!("{name}.out"))).unwrap_or_default()
    }

    /// `run` or `pipeline`, as supervisor of this number.
    pub(crate) fn supervise(&self, number: u32, words: &[&str]) -> Result<Child, String> {
        let (Some((verb, rest)), manifest) = (words.split_first(), self.manifest()) else {
            return Err("no verb".to_owned());
        };
        let lease = format!("{}ms", self.lease.as_millis());
        let mut command = self.command_line();
        command.arg(verb).arg("--tasks").arg(manifest);
        command.args(["--lease-ttl", &lease, "--grace", "500ms"]).args(rest);
        command.args(["--artifacts"]).arg(self.folder.join("artifacts"));
        self.start(command.env(body::SUPERVISOR, number.to_string()), &format!("s{number}"))
    }

    /// An embedding program, as supervisor of this number.
    pub(crate) fn node(&self, number: u32, seed: u64) -> Result<Child, String> {
        let mut command = Command::new(&self.program);
        command.arg("node").arg(&self.folder).arg(number.to_string());
        command.arg(self.database.argument());
        command.args([self.lease.as_millis().to_string(), seed.to_string()]);
        self.start(&mut command, &format!("s{number}"))
    }

    /// A command that looks or asks.
    pub(crate) fn ask(&self, name: &str, words: &[&str]) -> Result<Child, String> {
        self.start(self.command_line().arg("--json").args(words), name)
    }

    fn command_line(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(COMMAND_LINE).args(["--db", &self.database.argument()]);
        command
    }

    fn start(&self, command: &mut Command, name: &str) -> Result<Child, String> {
        let file = |kind| {
            File::create(self.said().join(format!("{name}.{kind}")))
                .map_err(|error| format!("{name}.{kind}: {error}"))
        };
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("CHONGMING_") {
                command.env_remove(variable);
            }
        }
        command.env(body::FOLDER, &self.folder).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        command.spawn().map_err(|error| format!("cannot start {name}: {error}"))
    }
}
