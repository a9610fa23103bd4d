//! The executor contract, on threads and inline.

use std::sync::Arc;

use chongming_contract::executor::Fixture;
use chongming_core::{Executor, InlineExecutor, ThreadExecutor};

struct Threads;

impl Fixture for Threads {
    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(ThreadExecutor::new())
    }
}

struct Inline;

impl Fixture for Inline {
    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(InlineExecutor)
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

mod threads {
    use super::Threads;
    chongming_contract::executor_contract_tests!(Threads);
}

mod inline {
    use super::Inline;
    chongming_contract::executor_contract_tests!(Inline);
}
