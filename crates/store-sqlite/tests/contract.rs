//! The contract, on files and in memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use chongming_contract::{Data, Fixture};
use chongming_core::store::TaskStore;
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};

struct OnDisk(Synchronous);

struct File(tempfile::TempDir, Options);

impl Fixture for OnDisk {
    fn fresh(&self) -> Box<dyn Data> {
        let options = Options { synchronous: self.0, ..Options::default() };
        Box::new(File(tempfile::tempdir().unwrap(), options))
    }
}

impl Data for File {
    fn connect(&self) -> Arc<dyn TaskStore> {
        Arc::new(SqliteStore::open(self.0.path().join("tasks.db"), self.1).unwrap())
    }

    fn outlives_close(&self) -> bool {
        true
    }
}

struct InMemory;

struct Memory(Arc<SqliteStore>);

impl Fixture for InMemory {
    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Memory(Arc::new(SqliteStore::in_memory().unwrap())))
    }
}

impl Data for Memory {
    fn connect(&self) -> Arc<dyn TaskStore> {
        self.0.clone()
    }

    fn outlives_close(&self) -> bool {
        false
    }
}

mod full {
    use super::*;
    chongming_contract::contract_tests!(OnDisk(Synchronous::Full));
}

mod normal {
    use super::*;
    chongming_contract::contract_tests!(OnDisk(Synchronous::Normal));
}

mod in_memory {
    use super::*;
    chongming_contract::contract_tests!(InMemory);
}
