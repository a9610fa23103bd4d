//! A throw-away Postgres server from local programs, which its owner may stop and start.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The user that the server runs as where we are root, which it refuses.
const UNPRIVILEGED: &str = "postgres";

const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The folder with `initdb` and `postgres`: of PATH, or where Debian puts them, the newest first.
pub fn programs() -> Option<PathBuf> {
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
        ["initdb", "pg_isready", "postgres"].iter().all(|name| folder.join(name).is_file())
    };
    folders.into_iter().find(is_complete)
}

/// A server with nothing in it, on a port of its own; stopped when dropped.
///
/// It is a child in our own process group: what interrupts us ends it, too.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    running: Option<Child>,
}

/// How the server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Connections are ended, and their transactions rolled back.
    Fast,
    /// As by a loss of power; the next start recovers.
    Immediate,
}

impl Server {
    /// Makes one in an empty folder, which the server's user is given. It does not run yet.
    ///
    /// # Errors
    /// What went wrong, as text.
    pub fn make(programs: &Path, folder: &Path) -> Result<Self, String> {
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = port.map_err(|error| format!("there is no free port: {error}"))?.port();
        let settings = vec![
            format!("port={port}"),
            format!("unix_socket_directories={}", folder.display()),
            "listen_addresses=127.0.0.1".to_owned(),
            "max_connections=200".to_owned(),
        ];
        let (programs, folder) = (programs.to_owned(), folder.to_owned());
        let server = Self { programs, folder, port, settings, running: None };
        give(&server.folder)?;
        let mut initdb = server.command(&server.programs.join("initdb"));
        initdb.arg("-D").arg(server.data()).args(["--auth=trust", "--username=postgres"]);
        finish(initdb.args(["--encoding=UTF8", "--no-locale", "--no-sync"]))?;
        Ok(server)
    }

    /// `name=value`, from the next start on.
    pub fn set(&mut self, setting: impl Into<String>) {
        self.settings.push(setting.into());
    }

    /// Returns once connections are accepted.
    ///
    /// # Errors
    /// What the server says.
    pub fn start(&mut self) -> Result<(), String> {
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.map_err(|error| format!("{}: {error}", self.log().display()))?;
        let mut postgres = self.command(&self.programs.join("postgres"));
        postgres.arg("-D").arg(self.data());
        for setting in &self.settings {
            postgres.args(["-c", setting]);
        }
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = postgres.spawn().map_err(|error| format!("cannot start postgres: {error}"))?;
        let server = self.running.insert(server);
        let mut ended = || server.try_wait().ok().flatten();
        let until = Instant::now() + STARTS_WITHIN;
        loop {
            let mut ask = Command::new(self.programs.join("pg_isready"));
            ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ask.status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
            if ended().is_some() || Instant::now() > until {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                return Err(format!("Postgres did not start; it says:\n{log}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns once it is gone.
    pub fn stop(&mut self, how: Stop) {
        let Some(mut server) = self.running.take() else { return };
        let signal = match how {
            Stop::Fast => "-INT",
            Stop::Immediate => "-QUIT",
        };
        // Only a server's own children may be killed harder, so this is the last resort.
        let sent = Command::new("kill").args([signal, &server.id().to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            let _ = server.kill();
        }
        let _ = server.wait();
    }

    /// For a connection without TLS as the superuser, who is trusted.
    pub fn dsn(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// The server's own folder, with its `pg_hba.conf`.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program that runs in the server's folder, as the server's user.
    pub fn command(&self, program: &Path) -> Command {
        unprivileged(program, &self.folder)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Immediate);
    }
}

/// Gives a folder to the user that [`unprivileged`] programs run as.
///
/// # Errors
/// What went wrong, as text.
pub fn give(folder: &Path) -> Result<(), String> {
    if is_root() { finish(Command::new("chown").arg(UNPRIVILEGED).arg(folder)) } else { Ok(()) }
}

/// A program that runs in this folder, and not as root.
pub fn unprivileged(program: &Path, folder: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--clear-groups"]);
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder);
    command
}

/// Are we root, whom Postgres does not run for?
pub fn is_root() -> bool {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    *IS_ROOT.get_or_init(|| {
        let output = Command::new("id").arg("-u").stderr(Stdio::null()).output();
        output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
    })
}

/// Runs it to its end.
///
/// # Errors
/// It could not be started, or failed; with what it said, which is shown only then.
pub fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}
