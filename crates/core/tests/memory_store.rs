//! The contract, on the store in memory.

use std::sync::Arc;

use chongming_contract::{Data, Fixture};
use chongming_core::InMemoryStore;
use chongming_core::store::TaskStore;

struct InMemory;

struct Fresh(Arc<InMemoryStore>);

impl Fixture for InMemory {
    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Fresh(Arc::new(InMemoryStore::new())))
    }
}

impl Data for Fresh {
    fn connect(&self) -> Arc<dyn TaskStore> {
        self.0.clone()
    }

    fn outlives_close(&self) -> bool {
        false
    }
}

chongming_contract::contract_tests!(InMemory);
