//! What may be opened, and what is left alone byte for byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use chongming_core::store::{Entry, StoreError, StoreErrorKind, TaskFilter, TaskStore};
use chongming_core::{TaskId, TaskSnapshot, Timestamp};
use chongming_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Options::default())
}

fn open_existing(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_existing(path, Options::default())
}

fn error(opened: Result<SqliteStore, StoreError>) -> StoreError {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

fn create(id: &str) -> Entry {
    let at = Timestamp::from_micros(1);
    let snapshot = TaskSnapshot::pending(TaskId::new(id).unwrap(), "t", "me".into(), at);
    Entry::Create { snapshot: snapshot.into(), transitions: vec![] }
}

/// Names and contents of all files in a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Both ways of opening refuse the file, name it, say this, and change nothing in its folder.
fn refused(folder: &TempDir, path: &Path, kind: StoreErrorKind, words: &str) {
    let before = contents(folder.path());
    for opened in [open(path), open_existing(path)] {
        let error = error(opened);
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(text.contains(path.to_str().unwrap()) && text.contains(words), "{text}");
    }
    assert_eq!(contents(folder.path()), before);
}

/// A database of ours, closed, then changed by hand.
fn changed(folder: &TempDir, sql: &str) -> PathBuf {
    let path = folder.path().join("tasks.db");
    let store = open(&path).unwrap();
    store.write(&[create("a")]).unwrap();
    store.close().unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    path
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempdir().unwrap();
    let path = changed(&folder, "PRAGMA user_version = 3; CREATE TABLE later (x);");
    refused(
        &folder,
        &path,
        StoreErrorKind::Foreign,
        "newer version (schema 3; this program knows 2)",
    );
}

#[test]
fn another_programs_database_is_refused() {
    for sql in [
        "CREATE TABLE t (x)",
        "PRAGMA application_id = 77; CREATE TABLE t (x)",
        "PRAGMA journal_mode = WAL; CREATE TABLE tasks (id)",
        "PRAGMA user_version = 1; CREATE TABLE tasks (id)",
    ] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("other.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        refused(&folder, &path, StoreErrorKind::Foreign, "belongs to another program");
        connection.close().unwrap();
        refused(&folder, &path, StoreErrorKind::Foreign, "belongs to another program");
    }
}

#[test]
fn what_is_no_database_is_refused() {
    for garbage in ["x", "just some notes\n", "SQLite format 3\0", &"SQLite format 4\0".repeat(600)]
    {
        let folder = tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, garbage).unwrap();
        refused(&folder, &path, StoreErrorKind::Foreign, "is no SQLite database");
    }
}

#[test]
fn folders_and_pipes_are_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("folder");
    fs::create_dir(&path).unwrap();
    refused(&folder, &path, StoreErrorKind::Foreign, "is a folder");
    if cfg!(unix) {
        refused(&folder, Path::new("/dev/null"), StoreErrorKind::Foreign, "is not a regular file");
    }
}

#[test]
fn missing_things_are_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("missing.db");
    let text = error(open_existing(&path)).to_string();
    assert!(text.contains("missing.db does not exist"), "{text}");
    let path = folder.path().join("nowhere").join("tasks.db");
    let text = error(open(&path)).to_string();
    assert!(text.contains("there is no folder") && text.contains("nowhere"), "{text}");
    let text = error(open(Path::new(""))).to_string();
    assert!(text.contains("has no file name"), "{text}");
    for end in ["/", "/."] {
        let path = format!("{}{end}", folder.path().join("missing.db").display());
        refused(&folder, Path::new(&path), StoreErrorKind::Invalid, "written like a folder");
    }
    assert_eq!(contents(folder.path()), vec![]);
}

#[test]
fn an_empty_file_is_for_writers_only() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    fs::write(&path, "").unwrap();
    let text = error(open_existing(&path)).to_string();
    assert!(text.contains("is empty; it becomes a database"), "{text}");
    assert_eq!(contents(folder.path()), vec![(path.clone(), vec![])]);
    open(&path).unwrap().close().unwrap();
    open_existing(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn links_lead_to_their_file() {
    let folder = tempdir().unwrap();
    let (path, link) = (folder.path().join("tasks.db"), folder.path().join("link.db"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    refused(&folder, &link, StoreErrorKind::Foreign, "symbolic link to a file that does not exist");
    let store = open(&path).unwrap();
    let linked = open_existing(&link).unwrap();
    linked.write(&[create("a")]).unwrap();
    assert!(store.get(&TaskId::new("a").unwrap()).unwrap().is_some());
}

#[test]
fn odd_names_are_names() {
    let folder = tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b%20?#.db", "数据.db"] {
        let path = folder.path().join(name);
        open(&path).unwrap().write(&[create("a")]).unwrap();
        let store = open_existing(&path).unwrap();
        assert!(store.get(&TaskId::new("a").unwrap()).unwrap().is_some(), "{name}");
    }
}

#[test]
fn the_last_to_close_leaves_one_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let (one, other) = (open(&path).unwrap(), open_existing(&path).unwrap());
    one.write(&[create("a")]).unwrap();
    other.get(&TaskId::new("a").unwrap()).unwrap();
    one.close().unwrap();
    other.close().unwrap();
    let names: Vec<_> = contents(folder.path()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, vec![path]);
}

#[cfg(unix)]
#[test]
fn what_goes_into_a_file_that_is_gone_is_not_called_written() {
    let folder = tempdir().unwrap();
    let (path, aside) = (folder.path().join("tasks.db"), folder.path().join("aside.db"));
    let store = open(&path).unwrap();
    assert_eq!(store.write(&[create("a")]).unwrap(), [Ok(())]);
    let is_gone = |id: &str| {
        let error = store.write(&[create(id)]).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.to_string().contains("deleted or replaced"), "{error}");
    };
    fs::rename(&path, &aside).unwrap();
    is_gone("b");
    fs::write(&path, "another").unwrap();
    is_gone("c");
    fs::rename(&aside, &path).unwrap();
    assert_eq!(store.write(&[create("d")]).unwrap(), [Ok(())], "put back");
}

/// What SQLite adds to a path for the log of a database, and for the index of that log.
#[cfg(unix)]
const BESIDE: [&str; 2] = ["-wal", "-shm"];

#[cfg(unix)]
#[test]
fn what_goes_into_a_log_that_is_gone_is_not_called_written() {
    for suffix in BESIDE {
        let folder = tempdir().unwrap();
        let (path, aside) = (folder.path().join("tasks.db"), folder.path().join("aside"));
        let store = open(&path).unwrap();
        let name = &folder.path().join(format!("tasks.db{suffix}"));
        assert_eq!(store.write(&[create("a")]).unwrap(), [Ok(())]);
        let is_gone = |id: &str| {
            let error = store.write(&[create(id)]).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            let words = format!("{} was deleted or replaced", name.display());
            assert!(error.to_string().contains(&words), "{error}");
        };
        fs::rename(name, &aside).unwrap();
        is_gone("b");
        fs::write(name, "").unwrap();
        is_gone("c");
        fs::rename(&aside, name).unwrap();
        assert_eq!(store.write(&[create("d")]).unwrap(), [Ok(())], "put back");
    }
}

/// This test is its own child program: with the variable set it is the other one, which comes later.
#[cfg(unix)]
#[test]
fn who_lost_the_log_leaves_that_of_others_alone() {
    const VARIABLE: &str = "CHONGMING_TEST_LATER";
    if let Some(path) = std::env::var_os(VARIABLE) {
        let store = open(Path::new(&path)).unwrap();
        assert_eq!(store.write(&[create("later")]).unwrap(), [Ok(())]);
        store.close().unwrap();
        return;
    }
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let store = open(&path).unwrap();
    store.write(&[create("a")]).unwrap();
    for suffix in BESIDE {
        fs::remove_file(folder.path().join(format!("tasks.db{suffix}"))).unwrap();
    }
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "who_lost_the_log_leaves_that_of_others_alone"])
        .env(VARIABLE, &path)
        .output()
        .unwrap();
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stdout));
    let error = store.write(&[create("b")]).unwrap_err();
    assert!(error.to_string().contains("tasks.db-wal was deleted or replaced"), "{error}");
    store.close().unwrap();
    drop(store);
    let later = open(&path).unwrap().get(&TaskId::new("later").unwrap()).unwrap();
    assert!(later.is_some(), "what another program was told to be written is there");
}

/// What the check relies on: the log and its index stay the same files while a store is open, whatever happens to
/// their contents, and whoever else comes and goes.
#[cfg(unix)]
#[test]
fn a_log_stays_the_same_file_while_it_is_open() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let store = open(&path).unwrap();
    let work = [
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA wal_checkpoint(RESTART)",
        "VACUUM",
        "PRAGMA journal_size_limit = 0; PRAGMA wal_autocheckpoint = 1; REINDEX",
    ];
    for (i, sql) in work.into_iter().enumerate() {
        let other = Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
        assert_eq!(store.write(&[create(&format!("beside-{i}"))]).unwrap(), [Ok(())], "{sql}");
        let mode = |other: &Connection| {
            other.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0))
        };
        assert!(mode(&other).is_err(), "it is in use");
        other.close().unwrap();
        assert_eq!(store.write(&[create(&format!("after-{i}"))]).unwrap(), [Ok(())], "{sql}");
    }
}

#[test]
fn damage_is_told_apart() {
    let folder = tempdir().unwrap();
    let path = changed(&folder, "UPDATE tasks SET status = 99");
    let error = open_existing(&path).unwrap().get(&TaskId::new("a").unwrap()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8192..].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    let error = open_existing(&path).unwrap().count(&TaskFilter::default()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
}

#[test]
fn words_are_there_for_other_tools() {
    let folder = tempdir().unwrap();
    let path = changed(&folder, "");
    let connection = Connection::open(path).unwrap();
    let state: String =
        connection.query_row("SELECT state FROM task_list", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "pending");
}

#[test]
fn threads_open_first_at_once() {
    let folder = tempdir().unwrap();
    let (path, barrier) = (folder.path().join("tasks.db"), Barrier::new(16));
    thread::scope(|scope| {
        for i in 0..16 {
            let (path, barrier) = (&path, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let store = open(path).unwrap();
                assert_eq!(store.write(&[create(&format!("task-{i}"))]).unwrap(), vec![Ok(())]);
            });
        }
    });
    assert_eq!(total(&open_existing(&path).unwrap()), 16);
}

fn total(store: &SqliteStore) -> u64 {
    store.count(&TaskFilter::default()).unwrap().iter().map(|count| count.tasks).sum()
}

/// This test is its own child program: with the variable set it is one of the processes.
#[test]
fn processes_open_first_at_once_and_write_at_once() {
    const VARIABLE: &str = "CHONGMING_TEST_DATABASE";
    const PROCESSES: u32 = 16;
    const TASKS: u32 = 60;
    if let Some(path) = std::env::var_os(VARIABLE) {
        let store = open(Path::new(&path)).unwrap();
        for i in 0..TASKS {
            let id = format!("{}-{i}", std::process::id());
            assert_eq!(store.write(&[create(&id)]).unwrap(), vec![Ok(())]);
        }
        return;
    }
    let folder = tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes_open_first_at_once_and_write_at_once"])
                .env(VARIABLE, &path)
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(total(&open_existing(&path).unwrap()), u64::from(PROCESSES * TASKS));
}
