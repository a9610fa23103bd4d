//! What the tests of the server share.

use chongming_core::store::{Entry, StoreError, TaskFilter, TaskStore};
use chongming_core::{TaskId, TaskSnapshot, Timestamp};
use chongming_store_postgres::PostgresStore;
use chongming_test_postgres::Server;
use tempfile::TempDir;

pub(crate) use crate::schema::{AUTHORITY, Schema, VARIABLE, server, skipped};

/// A server of one test's own, which it may stop and start, with its folder: the order in which the two are
/// given makes the server end first.
///
/// `None`, with a line that says so, where there are no programs. With CI set that is an error.
pub(crate) fn own_server(test: &str) -> Option<(TempDir, Server)> {
    let Some(programs) = chongming_test_postgres::programs() else {
        let why = "there is no Postgres server to start; install postgresql";
        assert!(std::env::var_os("CI").is_none(), "{test}: {why}");
        skipped(test, why);
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::make(&programs, folder.path()).unwrap();
    server.set("fsync=off");
    server.start().unwrap();
    Some((folder, server))
}

/// A task in `pending`, to be created.
pub(crate) fn create(id: &str) -> Entry {
    let at = Timestamp::from_micros(1_800_000_000_000_000);
    let snapshot = TaskSnapshot::pending(TaskId::new(id).unwrap(), "t", "me".into(), at);
    Entry::Create { snapshot: snapshot.into(), transitions: vec![] }
}

/// The error of an opening that must fail.
pub(crate) fn error(opened: Result<PostgresStore, StoreError>) -> StoreError {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

/// How many tasks there are.
pub(crate) fn total(store: &PostgresStore) -> u64 {
    store.count(&TaskFilter::default()).unwrap().iter().map(|count| count.tasks).sum()
}
