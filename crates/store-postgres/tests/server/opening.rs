//! What may be opened, and what is left alone.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use chongming_core::TaskId;
use chongming_core::store::{StoreErrorKind, TaskStore};
use chongming_store_postgres::{Options, PostgresStore};
use postgres::{Client, NoTls};

use crate::support::{Schema, create, error, skipped, total};

/// Both ways of opening refuse it, name the server, and say this.
fn refused(schema: &Schema, kind: StoreErrorKind, words: &str) {
    for open in [PostgresStore::connect, PostgresStore::connect_existing] {
        let error = error(open(&schema.dsn, schema.options()));
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(text.contains(words) && text.contains("/postgres"), "{text}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let Some(schema) = Schema::fresh("a newer schema") else { return };
    schema.connect().close().unwrap();
    let sql = format!("UPDATE \"{}\".schema_version SET version = 2", schema.name);
    schema.client().batch_execute(&sql).unwrap();
    refused(&schema, StoreErrorKind::Foreign, "has version 2; this program knows 1");
}

#[test]
fn another_programs_schema_is_refused_and_left_alone() {
    let Some(schema) = Schema::fresh("another program's schema") else { return };
    let name = &schema.name;
    let sql = format!("CREATE SCHEMA \"{name}\"; CREATE TABLE \"{name}\".tasks (x int)");
    schema.client().batch_execute(&sql).unwrap();
    refused(&schema, StoreErrorKind::Foreign, "has tables of another program in schema");
    let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
    let tables: i64 = schema.client().query_one(sql, &[name]).unwrap().get(0);
    assert_eq!(tables, 1);
}

#[test]
fn readers_do_not_make_tables() {
    let Some(schema) = Schema::fresh("readers do not make tables") else { return };
    let opened = PostgresStore::connect_existing(&schema.dsn, schema.options());
    let text = error(opened).to_string();
    assert!(text.contains(&format!("has no tables in schema {}", schema.name)), "{text}");
    let sql = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
    let schemas: i64 = schema.client().query_one(sql, &[&schema.name]).unwrap().get(0);
    assert_eq!(schemas, 0);
}

#[test]
fn odd_names_are_names() {
    let Some(mut schema) = Schema::fresh("odd names") else { return };
    schema.name.push_str("'; ~.$1 数");
    schema.connect().write(&[create("a")]).unwrap();
    assert_eq!(total(&schema.connect_existing()), 1);
}

#[test]
fn the_connection_string_may_name_the_schema() {
    let Some(schema) = Schema::fresh("a schema in the connection string") else { return };
    let mark = if schema.dsn.contains('?') { '&' } else { '?' };
    let dsn = format!("{}{mark}schema={}", schema.dsn, schema.name);
    PostgresStore::connect(&dsn, Options::default()).unwrap().write(&[create("a")]).unwrap();
    assert_eq!(total(&schema.connect_existing()), 1);
}

#[test]
fn a_database_that_is_not_there_is_named() {
    let Some(schema) = Schema::fresh("a database that is not there") else { return };
    let dsn = schema.dsn.replace("/postgres?", "/no_such_database?");
    let error = error(PostgresStore::connect(&dsn, schema.options()));
    assert_eq!(error.kind(), StoreErrorKind::Foreign, "{error}");
    assert!(error.to_string().contains("/no_such_database (schema "), "{error}");
}

#[test]
fn a_database_that_takes_nobody_says_so() {
    let Some(schema) = Schema::fresh("a database that takes nobody") else { return };
    let name = &schema.name;
    let mut client = schema.client();
    let create = format!("CREATE DATABASE \"{name}\" ALLOW_CONNECTIONS false");
    client.batch_execute(&create).unwrap();
    let dsn = schema.dsn.replace("/postgres?", &format!("/{name}?"));
    let opened = PostgresStore::connect(&dsn, schema.options());
    client.batch_execute(&format!("DROP DATABASE \"{name}\"")).unwrap();
    let error = error(opened);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("in the state that it is in") && text.contains("not currently"),
        "{text}"
    );
}

#[test]
fn words_are_there_for_other_tools() {
    let Some(schema) = Schema::fresh("words") else { return };
    schema.connect().write(&[create("a")]).unwrap();
    let sql = format!("SELECT state FROM \"{}\".task_list", schema.name);
    let state: String = schema.client().query_one(&sql, &[]).unwrap().get(0);
    assert_eq!(state, "pending");
}

#[test]
fn rows_that_nobody_understands_are_corrupt() {
    let Some(schema) = Schema::fresh("rows that nobody understands") else { return };
    let store = schema.connect();
    store.write(&[create("a")]).unwrap();
    schema
        .client()
        .batch_execute(&format!("UPDATE \"{}\".tasks SET status = 99", schema.name))
        .unwrap();
    let error = store.get(&TaskId::new("a").unwrap()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    schema.client().batch_execute(&format!("DROP TABLE \"{}\".facts", schema.name)).unwrap();
    let error = store.pinned("x").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
}

#[test]
fn threads_open_first_at_once() {
    let Some(schema) = Schema::fresh("threads open first at once") else { return };
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for i in 0..8 {
            let (schema, barrier) = (&schema, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let store = schema.connect();
                assert_eq!(store.write(&[create(&format!("task-{i}"))]).unwrap(), vec![Ok(())]);
            });
        }
    });
    assert_eq!(total(&schema.connect_existing()), 8);
}

/// This test is its own child program: with the variable set it is one of the processes.
#[test]
fn processes_open_first_at_once() {
    const SCHEMA: &str = "CHONGMING_TEST_SCHEMA";
    const PROCESSES: u64 = 8;
    if let Ok(name) = std::env::var(SCHEMA) {
        let dsn = std::env::var(crate::support::VARIABLE).unwrap();
        let options = Options { schema: name, ..Options::default() };
        let store = PostgresStore::connect(&dsn, options).unwrap();
        let id = std::process::id().to_string();
        assert_eq!(store.write(&[create(&id)]).unwrap(), vec![Ok(())]);
        return;
    }
    let Some(schema) = Schema::fresh("processes open first at once") else { return };
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "opening::processes_open_first_at_once"])
                .env(SCHEMA, &schema.name)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(total(&schema.connect_existing()), PROCESSES);
}

/// Passwords with everything that a URL gives a meaning to; a wrong one is refused and not repeated.
#[test]
fn passwords_may_hold_anything_and_are_never_shown() {
    let Some(schema) = Schema::fresh("passwords") else { return };
    let role = schema.name.clone();
    let password = "p@ss:w/o?r#d%41 &='\\\"数🎉";
    let mut client = schema.client();
    // Another test may make the group at the same time.
    let _ = client.batch_execute("CREATE ROLE chongming_with_password");
    let sql = format!(
        "CREATE ROLE \"{role}\" LOGIN PASSWORD '{}' IN ROLE chongming_with_password",
        password.replace('\'', "''")
    );
    client.batch_execute(&sql).unwrap();
    schema.connect().close().unwrap();
    let escaped: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let with = |secret: &str| schema.dsn.replace("//postgres@", &format!("//{role}:{secret}@"));
    let right = PostgresStore::connect_existing(&with(&escaped), schema.options());
    let wrong = PostgresStore::connect_existing(&with("hush%21"), schema.options());
    let none = Client::connect(&schema.dsn.replace("//postgres@", &format!("//{role}@")), NoTls);
    client.batch_execute(&format!("DROP ROLE \"{role}\"")).unwrap();
    if none.is_ok() {
        return skipped("passwords", "this server asks nobody for a password");
    }
    // It was let in, and has no rights.
    assert_eq!(error(right).kind(), StoreErrorKind::Denied);
    let wrong = error(wrong);
    let text = format!("{wrong} {wrong:?}");
    assert_eq!(wrong.kind(), StoreErrorKind::Denied);
    assert!(text.contains("refuses this user") && !text.contains("hush"), "{text}");
}
