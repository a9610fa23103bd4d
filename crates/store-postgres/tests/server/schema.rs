//! The server of the tests, and a schema of its own for each of them. The tests of the command line use this, too.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use chongming_core::TaskId;
use chongming_store_postgres::{Options, PostgresStore};
use postgres::{Client, NoTls};

/// Names a server whose databases may be written to: a connection string.
pub(crate) const VARIABLE: &str = "CHONGMING_TEST_POSTGRES";

/// Names the certificate of the server's authority, where it speaks TLS.
pub(crate) const AUTHORITY: &str = "CHONGMING_TEST_POSTGRES_CA";

/// The server's connection string, or why there is none.
pub(crate) fn server() -> Result<String, String> {
    match std::env::var(VARIABLE) {
        Ok(dsn) => Ok(dsn),
        Err(_) if std::env::var_os("CI").is_some() => {
            panic!("{VARIABLE} names no server, and with CI set every test must run")
        }
        Err(_) => Err(format!("{VARIABLE} names no server; `cargo xtask test` starts one")),
    }
}

/// A schema that nobody else uses; dropped at the end.
pub(crate) struct Schema {
    pub(crate) dsn: String,
    pub(crate) name: String,
}

impl Schema {
    /// `None`, with a line that says so, where there is no server.
    pub(crate) fn fresh(test: &str) -> Option<Self> {
        match server() {
            Ok(dsn) => Some(Self::on(dsn)),
            Err(why) => {
                skipped(test, &why);
                None
            }
        }
    }

    pub(crate) fn on(dsn: String) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { dsn, name: format!("test_{}_{number}", TaskId::generate()) }
    }

    pub(crate) fn options(&self) -> Options {
        Options { schema: self.name.clone(), ..Options::default() }
    }

    pub(crate) fn connect(&self) -> PostgresStore {
        PostgresStore::connect(&self.dsn, self.options()).unwrap()
    }

    pub(crate) fn connect_existing(&self) -> PostgresStore {
        PostgresStore::connect_existing(&self.dsn, self.options()).unwrap()
    }

    /// A connection beside the store's.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.dsn, NoTls).unwrap()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!(
            "SET client_min_messages = warning; DROP SCHEMA IF EXISTS \"{}\" CASCADE",
            self.name
        );
        if let Ok(mut client) = Client::connect(&self.dsn, NoTls) {
            let _ = client.batch_execute(&sql);
        }
    }
}

/// Says that a test did not run. Not by `eprintln`, which the test runner would hide.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
}
