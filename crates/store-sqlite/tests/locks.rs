//! Waiting for other programs, up to a limit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use chongming_core::store::{CommandKind, Entry, NewCommand, StoreErrorKind, TaskStore};
use chongming_core::{CommandId, IncarnationId, TaskId, TaskSnapshot, Timestamp};
use chongming_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;
use tempfile::tempdir;

#[test]
fn a_lock_held_too_long_is_told_with_file_and_limit() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let options = Options { lock_wait: Duration::from_millis(30), ..Options::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let snapshot = TaskSnapshot::pending(
        TaskId::new("a").unwrap(),
        "t",
        "me".into(),
        Timestamp::from_micros(1),
    );
    let entry = Entry::Create { snapshot: snapshot.into(), transitions: vec![] };
    let error = store.write(std::slice::from_ref(&entry)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("tasks.db stayed locked") && text.contains("30ms"), "{text}");
    // Reading goes on beside the writer, and writing once the lock is gone.
    assert_eq!(store.get(entry.task_id()).unwrap(), None);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(store.write(&[entry]).unwrap(), vec![Ok(())]);
}

#[test]
fn a_lock_held_by_another_is_no_matter_of_rights() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    SqliteStore::open(&path, Options::default()).unwrap().close().unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    SqliteStore::open(&path, Options::default()).unwrap();
}

/// A command for `life-1`, handed in through `from`, rings the bell of `to`.
fn rings(from: &SqliteStore, to: &SqliteStore) {
    let holder = IncarnationId::new("life-1").unwrap();
    let (sender, bell) = channel();
    let sender = std::sync::Mutex::new(sender);
    to.subscribe(&holder, Arc::new(move || sender.lock().unwrap().send(()).unwrap_or(())));
    from.submit_command(&NewCommand {
        id: CommandId::new("c").unwrap(),
        task_id: TaskId::new("a").unwrap(),
        holder,
        kind: CommandKind::Stop,
        reason: None,
        issuer: "me".into(),
        issued_at: Timestamp::from_micros(1),
    })
    .unwrap();
    bell.recv_timeout(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_command_rings_its_holder() {
    let store = SqliteStore::in_memory().unwrap();
    rings(&store, &store);
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_rings_its_holder_in_another_store() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let here = SqliteStore::open(&path, Options::default()).unwrap();
    let there = SqliteStore::open_existing(&path, Options::default()).unwrap();
    rings(&there, &here);
    here.close().unwrap();
}
