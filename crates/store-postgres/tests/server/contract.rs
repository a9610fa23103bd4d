//! The contract, on a server.

use std::sync::Arc;

use chongming_contract::{Data, Fixture};
use chongming_core::store::TaskStore;

use crate::support::{self, Schema};

struct Server;

struct Tables(Schema);

impl Fixture for Server {
    fn missing(&self) -> Option<String> {
        support::server().err()
    }

    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Tables(Schema::on(support::server().unwrap())))
    }
}

impl Data for Tables {
    fn connect(&self) -> Arc<dyn TaskStore> {
        Arc::new(self.0.connect())
    }

    fn outlives_close(&self) -> bool {
        true
    }
}

mod clauses {
    use super::*;
    chongming_contract::contract_tests!(Server);
}
