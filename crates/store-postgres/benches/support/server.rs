//! The server of the benchmarks, and a schema on it that each of them fills anew.

use chongming_core::store::TaskStore;
use chongming_store_postgres::{Options, PostgresStore};
use postgres::{Client, NoTls};

pub(crate) type Anything = Box<dyn std::error::Error + Send + Sync>;

pub(crate) const SCHEMA: &str = "chongming_bench";

pub(crate) struct Server {
    pub(crate) dsn: String,
}

impl Server {
    /// `None`, with a line that says so, where nobody named one.
    pub(crate) fn find() -> Option<Self> {
        let dsn = std::env::var("CHONGMING_TEST_POSTGRES").ok();
        if dsn.is_none() {
            eprintln!("skipped: CHONGMING_TEST_POSTGRES names no server");
        }
        dsn.map(|dsn| Self { dsn })
    }

    pub(crate) fn client(&self) -> Result<Client, Anything> {
        let mut client = Client::connect(&self.dsn, NoTls)?;
        client.batch_execute(&format!("SET search_path = {SCHEMA}; SET jit = off"))?;
        Ok(client)
    }

    /// Runs it on empty tables.
    pub(crate) fn fresh<T>(
        &self,
        run: impl FnOnce() -> Result<T, Anything>,
    ) -> Result<T, Anything> {
        self.clear()?;
        let options = Options { schema: SCHEMA.to_owned(), ..Options::default() };
        PostgresStore::connect(&self.dsn, options)?.close()?;
        run()
    }

    /// Leaves nothing behind.
    pub(crate) fn clear(&self) -> Result<(), Anything> {
        let sql = format!(
            "SET client_min_messages = warning; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CHECKPOINT"
        );
        Ok(Client::connect(&self.dsn, NoTls)?.batch_execute(&sql)?)
    }
}
