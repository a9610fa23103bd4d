//! What the author of a store provides.

use std::sync::Arc;

use chongming_core::store::TaskStore;

/// Makes places for data, as many as there are cases.
pub trait Fixture: Sync {
    /// A place with no data in it, that nobody else uses. Dropping it cleans up.
    fn fresh(&self) -> Box<dyn Data>;

    /// Why no data can be had here, such as a server that nobody named: then the tests are skipped, and each
    /// says so.
    fn missing(&self) -> Option<String> {
        None
    }
}

/// One place for data, such as a file, a schema on a server, or a store in memory.
pub trait Data: Sync {
    /// Opens a store on the data: called several times, also while others are open. A store that cannot
    /// share its data gives the same one again.
    fn connect(&self) -> Arc<dyn TaskStore>;

    /// Can the data be opened again after every store on it was closed?
    fn outlives_close(&self) -> bool;
}
