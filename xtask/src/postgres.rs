//! A Postgres server for tests and benchmarks: the one that is named, or a throw-away one from local binaries.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::certificates::{self, Certificates};

/// Where the tests look for a server.
pub(crate) const VARIABLE: &str = "CHONGMING_TEST_POSTGRES";

/// Where they look for the certificate of its authority, if it speaks TLS.
pub(crate) const AUTHORITY: &str = "CHONGMING_TEST_POSTGRES_CA";

/// Members of this role need their password, everybody else is trusted.
const PASSWORD_NEEDED: &str = "host all +chongming_with_password all scram-sha-256\n";

/// The user that the server runs as where we are root, which it refuses.
const UNPRIVILEGED: &str = "postgres";

/// Its folders are named so, with our process id behind it.
const FOLDER: &str = "chongming-postgres-";

const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// What the tests are told.
pub(crate) enum Server {
    /// One that somebody named, or that will be missed: the environment stays as it is.
    AsItIs,
    /// Ours, which ends with this value.
    Started(Cluster),
}

/// What a server of ours is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Nothing in it has to survive, so nothing waits for a disk.
    Tests,
    /// Durable as the server is by default, or no figure would mean anything.
    Benches,
}

impl Purpose {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tests => &["fsync=off", "full_page_writes=off"],
            Self::Benches => &[],
        }
    }
}

/// Finds or starts a server.
pub(crate) fn server(purpose: Purpose) -> Result<Server, String> {
    if std::env::var_os(VARIABLE).is_some() {
        return Ok(Server::AsItIs);
    }
    match binaries() {
        Some(binaries) => Cluster::start(&binaries, purpose).map(Server::Started),
        None if std::env::var_os("CI").is_some() => Err(format!(
            "there is no Postgres server: install postgresql, or name one by {VARIABLE}; with CI set the \
             tests that need it are not skipped"
        )),
        None => {
            eprintln!(
                "==> SKIPPED: tests that need a Postgres server; install postgresql, or name one by {VARIABLE}"
            );
            Ok(Server::AsItIs)
        }
    }
}

/// The folder with `initdb` and `postgres`: beside PATH, where Debian puts them, the newest first.
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
    let complete = |folder: &PathBuf| {
        ["initdb", "pg_isready", "postgres"].iter().all(|name| folder.join(name).is_file())
    };
    folders.into_iter().find(complete)
}

/// A running server with nothing in it; stopped and removed when dropped.
///
/// It is a child in our own process group: what interrupts us ends it, too, and leaves only its folder, which
/// the next one removes.
pub(crate) struct Cluster {
    folder: PathBuf,
    binaries: PathBuf,
    port: u16,
    certificates: Option<Certificates>,
    server: Option<Child>,
}

impl Cluster {
    fn start(binaries: &Path, purpose: Purpose) -> Result<Self, String> {
        remove_left_over();
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        let failed = |error: io::Error| format!("cannot make {}: {error}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
        // From here on dropping it cleans up.
        let mut cluster =
            Self { folder, binaries: binaries.to_owned(), port, certificates: None, server: None };
        if is_root() {
            finish(Command::new("chown").arg(UNPRIVILEGED).arg(&cluster.folder), "chown")?;
        }
        eprintln!("==> starting Postgres from {} on port {port}", binaries.display());
        let data = cluster.folder.join("data");
        let mut initdb = cluster.command(&binaries.join("initdb"));
        initdb.arg("-D").arg(&data).args(["--auth=trust", "--username=postgres"]);
        finish(initdb.args(["--encoding=UTF8", "--no-locale", "--no-sync"]), "initdb")?;
        let hba = data.join("pg_hba.conf");
        let rules = fs::read_to_string(&hba).map_err(|error| error.to_string())?;
        fs::write(&hba, [PASSWORD_NEEDED, &rules].concat()).map_err(|error| error.to_string())?;
        match certificates::make(&cluster.folder, || cluster.command(Path::new("openssl"))) {
            Ok(made) => cluster.certificates = Some(made),
            Err(message) if std::env::var_os("CI").is_some() => return Err(message),
            Err(message) => eprintln!("==> SKIPPED: tests of TLS; {message}"),
        }
        let log = fs::File::create(cluster.log()).map_err(|error| error.to_string())?;
        let sockets = format!("unix_socket_directories={}", cluster.folder.display());
        let mut postgres = cluster.command(&binaries.join("postgres"));
        postgres.arg("-D").arg(&data).args(["-c", &format!("port={port}"), "-c", &sockets]);
        let common = ["listen_addresses=127.0.0.1", "max_connections=200"];
        for setting in common.iter().chain(purpose.settings()) {
            postgres.args(["-c", setting]);
        }
        if let Some(Certificates { authority: _, server, key }) = &cluster.certificates {
            let (server, key) = (server.display(), key.display());
            postgres.args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={server}")]);
            postgres.args(["-c", &format!("ssl_key_file={key}")]);
        }
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started = postgres.spawn();
        cluster.server = Some(started.map_err(|error| format!("cannot start postgres: {error}"))?);
        cluster.await_ready()?;
        Ok(cluster)
    }

    /// Tells the tests.
    pub(crate) fn announce(&self, tests: &mut Command) {
        let dsn = format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port);
        tests.env(VARIABLE, dsn);
        if let Some(certificates) = &self.certificates {
            tests.env(AUTHORITY, &certificates.authority);
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn await_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let mut ask = self.command(&self.binaries.join("pg_isready"));
            ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ask.status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
            let ended = self.server.as_mut().and_then(|server| server.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                return Err(format!("Postgres did not start; it says:\n{log}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A program, as the user whom the server runs as.
    fn command(&self, program: &Path) -> Command {
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
        if let Some(server) = &mut self.server {
            // At once, without tidying up; only a server's own children may be killed harder.
            let quit = Command::new("kill").args(["-QUIT", &server.id().to_string()]).status();
            if !quit.is_ok_and(|status| status.success()) {
                let _ = server.kill();
            }
            let _ = server.wait();
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// Removes the folders of those that were interrupted.
fn remove_left_over() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(FOLDER)) else { continue };
        let mut ask = Command::new("kill");
        ask.args(["-0", pid]).stderr(Stdio::null());
        if ask.status().is_ok_and(|status| !status.success()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn free_port() -> io::Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr().map(|address| address.port())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs it, and shows what it said only where it failed.
pub(crate) fn finish(command: &mut Command, shown: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {shown}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}
