//! The cases, a file for each group. One that is not in the list of `clauses` is dead code, which the
//! compiler reports.

pub(crate) mod batch;
pub(crate) mod close;
pub(crate) mod command;
pub(crate) mod concurrency;
pub(crate) mod create;
pub(crate) mod facts;
pub(crate) mod node;
pub(crate) mod paging;
pub(crate) mod prune;
pub(crate) mod query;
pub(crate) mod save;
pub(crate) mod serialization;
pub(crate) mod touch;
pub(crate) mod trail;
