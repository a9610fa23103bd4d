//! A server of one test's own, which it may stop and start.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::skipped;

/// The user that the server runs as where we are root, which it refuses.
const UNPRIVILEGED: &str = "postgres";

/// A server with nothing in it; stopped and removed when dropped.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    binaries: PathBuf,
    port: u16,
}

/// How the server is stopped.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    /// Connections are ended, and their transactions rolled back.
    Fast,
    /// As by a loss of power; the next start recovers.
    Immediate,
}

impl Cluster {
    /// `None`, with a line that says so, where there are no binaries. With CI set that is an error.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(binaries) = binaries() else {
            let why = "there is no Postgres server to start; install postgresql";
            assert!(std::env::var_os("CI").is_none(), "{test}: {why}");
            skipped(test, why);
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = Self { folder, binaries, port };
        if is_root() {
            let folder = cluster.folder.path();
            assert!(
                Command::new("chown").arg(UNPRIVILEGED).arg(folder).status().unwrap().success()
            );
        }
        let settings = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"];
        cluster.run("initdb", &settings);
        cluster.start_again();
        Some(cluster)
    }

    pub(crate) fn dsn(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Returns once connections are accepted.
    pub(crate) fn start_again(&self) {
        let folder = self.folder.path().display();
        let options = format!("-p {} -h 127.0.0.1 -k {folder} -F", self.port);
        let log = format!("{folder}/log");
        self.run("pg_ctl", &["start", "-w", "-t", "60", "-l", &log, "-o", &options]);
    }

    /// Returns once it is gone.
    pub(crate) fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.run("pg_ctl", &["stop", "-w", "-t", "60", "-m", mode]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let status = self.command(program, arguments).status().unwrap();
        assert!(status.success(), "{program} {arguments:?}: {status}");
    }

    /// A program of the server, as the user whom it runs as.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path = self.binaries.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--clear-groups"]);
            command.arg(path);
            command
        } else {
            Command::new(path)
        };
        let folder = self.folder.path();
        command.arg("-D").arg(folder.join("data")).args(arguments).current_dir(folder);
        // The server keeps what it is started with: nothing of ours.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.command("pg_ctl", &["stop", "-w", "-m", "immediate"]).status();
    }
}

/// The folder with the server's programs: of PATH, or where Debian puts them, the newest first.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    folders.extend(versions.into_iter().rev().map(|(_, folder)| folder));
    let is_complete = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).is_file())
    };
    folders.into_iter().find(is_complete)
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(Path::new("/proc/self")).is_ok_and(|own| own.uid() == 0)
}
