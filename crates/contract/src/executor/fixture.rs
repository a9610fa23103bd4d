//! What the author of an executor provides.

use std::sync::Arc;
use std::time::Duration;

use chongming_core::{Executor, Target, TaskDefinition};

/// Makes executors, as many as there are cases.
pub trait Fixture: Sync {
    /// An executor that nobody else uses. Dropping it shuts it down.
    fn executor(&self) -> Arc<dyn Executor>;

    /// How one of the suite's [`definitions`](super::definitions) is given to the executor: as the function that
    /// it is, unless said otherwise.
    fn target(&self, definition: &TaskDefinition) -> Target {
        definition.target().clone()
    }

    /// Does `launch` run the body to its end before it returns? Then nobody can send a signal to it in time, and
    /// the clauses about signals demand that late ones change nothing.
    fn runs_inline(&self) -> bool {
        false
    }

    /// How long something that must happen may take, before it counts as not happening.
    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// Why there is no executor here, such as a platform without what it needs: then the tests are skipped, and
    /// each says so.
    fn missing(&self) -> Option<String> {
        None
    }
}
