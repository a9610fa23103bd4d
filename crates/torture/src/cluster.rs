//! A Postgres server of our own, to be restarted at bad moments.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// The user that the server runs as where we are root, which it refuses.
const UNPRIVILEGED: &str = "postgres";

/// Stopped when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    binaries: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Cluster {
    /// Makes one below this folder.
    pub(crate) fn start(folder: &Path) -> Result<Self, String> {
        let binaries = binaries().ok_or("there is no Postgres here: install postgresql")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = listener.map_err(|error| format!("there is no free port: {error}"))?.port();
        let folder = folder.join("postgres");
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        if is_root() {
            finish(Command::new("chown").arg(UNPRIVILEGED).arg(&folder))?;
        }
        let mut cluster = Self { folder, binaries, port, server: None };
        let mut initdb = cluster.command("initdb");
        initdb.arg("-D").arg(cluster.folder.join("data"));
        finish(initdb.args(["--auth=trust", "--username=postgres", "--no-sync"]))?;
        cluster.resume()?;
        Ok(cluster)
    }

    pub(crate) fn dsn(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Ends the server without tidying up.
    pub(crate) fn crash(&mut self) {
        if let Some(mut server) = self.server.take() {
            if let Some(pid) = Pid::from_raw(server.id().cast_signed()) {
                // It fails for one that has ended by itself.
                let _ = kill_process(pid, Signal::QUIT);
            }
            let _ = server.wait();
        }
    }

    /// Starts the server on what is there.
    pub(crate) fn resume(&mut self) -> Result<(), String> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        let log = log.map_err(|error| format!("the server's log: {error}"))?;
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.folder.join("data"));
        for setting in [
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.folder.display()),
            "listen_addresses=127.0.0.1".to_owned(),
            "max_connections=200".to_owned(),
        ] {
            postgres.args(["-c", &setting]);
        }
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(postgres.spawn().map_err(|error| format!("postgres: {error}"))?);
        let until = Instant::now() + STARTS_WITHIN;
        while !self.is_ready() {
            if Instant::now() > until {
                return Err(format!("Postgres did not start; see {}/log", self.folder.display()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let mut ask = self.command("pg_isready");
        ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        ask.status().is_ok_and(|status| status.success())
    }

    /// One of its programs, as the user whom the server runs as.
    fn command(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--clear-groups"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.crash();
    }
}

/// The folder with the newest server, where Debian puts them or on PATH.
fn binaries() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let newest = versions.pop().map(|(_, folder)| folder);
    let mut folders = newest.into_iter().chain(std::env::split_paths(&path));
    folders.find(|folder| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file()))
}

/// Are we root, whom Postgres does not run for?
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs it to its end.
pub(crate) fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}
