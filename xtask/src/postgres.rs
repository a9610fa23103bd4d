//! A Postgres server for tests and benchmarks: the one that is named, or a throw-away one from local programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::certificates::{self, Certificates};

/// Where the tests look for a server.
pub(crate) const VARIABLE: &str = "CHONGMING_TEST_POSTGRES";

/// Where they look for the certificate of its authority, if it speaks TLS.
pub(crate) const AUTHORITY: &str = "CHONGMING_TEST_POSTGRES_CA";

/// Members of this role need their password, everybody else is trusted.
const PASSWORD_NEEDED: &str = "host all +chongming_with_password all scram-sha-256\n";

/// Its folders are named so, with our process id behind it.
const FOLDER: &str = "chongming-postgres-";

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
    match chongming_test_postgres::programs() {
        Some(programs) => Cluster::start(&programs, purpose).map(Server::Started),
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

/// A running server with nothing in it; removed when dropped.
///
/// What interrupts us ends the server, too, and leaves only its folder, which the next one removes.
pub(crate) struct Cluster {
    server: chongming_test_postgres::Server,
    certificates: Option<Certificates>,
    /// Declared last: removed after the server has ended.
    _folder: Folder,
}

impl Cluster {
    fn start(programs: &Path, purpose: Purpose) -> Result<Self, String> {
        remove_left_over();
        let folder = Folder::make()?;
        eprintln!("==> starting Postgres from {}", programs.display());
        let mut server = chongming_test_postgres::Server::make(programs, &folder.0)?;
        let hba = server.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&hba).map_err(|error| error.to_string())?;
        fs::write(&hba, [PASSWORD_NEEDED, &rules].concat()).map_err(|error| error.to_string())?;
        let certificates =
            match certificates::make(&folder.0, || server.command(Path::new("openssl"))) {
                Ok(made) => Some(made),
                Err(message) if std::env::var_os("CI").is_some() => return Err(message),
                Err(message) => {
                    eprintln!("==> SKIPPED: tests of TLS; {message}");
                    None
                }
            };
        purpose.settings().iter().for_each(|setting| server.set(*setting));
        if let Some(Certificates { authority: _, server: certificate, key }) = &certificates {
            server.set("ssl=on");
            server.set(format!("ssl_cert_file={}", certificate.display()));
            server.set(format!("ssl_key_file={}", key.display()));
        }
        server.start()?;
        Ok(Self { server, certificates, _folder: folder })
    }

    /// Tells the tests.
    pub(crate) fn announce(&self, tests: &mut Command) {
        tests.env(VARIABLE, self.server.dsn());
        if let Some(certificates) = &self.certificates {
            tests.env(AUTHORITY, &certificates.authority);
        }
    }
}

/// A folder of this process's own; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => Ok(Self(folder)),
            Err(error) => Err(format!("cannot make {}: {error}", folder.display())),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
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
