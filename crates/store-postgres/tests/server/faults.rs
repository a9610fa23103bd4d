//! Connections that are killed in the middle of work: the next calls heal, and nothing is half-written.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chongming_core::store::{Entry, EntryError, Node, Now, StoreErrorKind, TaskStore};
use chongming_core::{IncarnationId, Status, TaskId, TaskSnapshot, Timestamp, Trigger, machine};
use chongming_store_postgres::{Options, PostgresStore};
use postgres::Client;

use crate::support::{Schema, create, total};

/// A store whose connections can be told from all others.
fn named(schema: &Schema, options: Options) -> PostgresStore {
    let mark = if schema.dsn.contains('?') { '&' } else { '?' };
    let dsn = format!("{}{mark}application_name={}", schema.dsn, schema.name);
    PostgresStore::connect(&dsn, options).unwrap()
}

/// Ends all connections of that store; returns how many there were.
fn terminate(client: &mut Client, schema: &Schema) -> usize {
    // The server cuts names at 63 bytes.
    let sql = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
               WHERE application_name = left($1, 63)";
    client.query(sql, &[&schema.name]).unwrap().len()
}

#[test]
fn a_lost_connection_goes_unnoticed_by_readers() {
    let Some(schema) = Schema::fresh("a lost connection") else { return };
    let store = named(&schema, schema.options());
    store.write(&[create("a")]).unwrap();
    let mut client = schema.client();
    for _ in 0..3 {
        assert_eq!(terminate(&mut client, &schema), 1);
        assert!(store.get(&TaskId::new("a").unwrap()).unwrap().is_some());
        assert_eq!(total(&store), 1);
    }
}

#[test]
fn a_writer_is_told_of_a_lost_connection_at_most_once() {
    let Some(schema) = Schema::fresh("a writer with a lost connection") else { return };
    let store = named(&schema, schema.options());
    let mut client = schema.client();
    for round in 0..3 {
        terminate(&mut client, &schema);
        let entry = create(&format!("task-{round}"));
        // It cannot be known whether it was written: only the caller may try again.
        if let Err(error) = store.write(std::slice::from_ref(&entry)) {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
            assert!(error.is_retryable());
            let again = store.write(&[entry]).unwrap();
            assert!(matches!(again.as_slice(), [Ok(()) | Err(EntryError::Exists)]), "{again:?}");
        }
        assert_eq!(total(&store), round + 1);
    }
}

/// Tasks that are created and ended under a store whose connections die all the time: in the end each has
/// its state and one row for each of its versions.
#[test]
fn nothing_is_half_written() {
    const TASKS: usize = 600;
    let Some(schema) = Schema::fresh("connections that die under load") else { return };
    let store = named(&schema, schema.options());
    let done = AtomicBool::new(false);
    let at = Timestamp::from_micros(1_800_000_000_000_000);
    let killed = thread::scope(|scope| {
        let (schema, done) = (&schema, &done);
        let killer = scope.spawn(move || {
            let (mut client, mut killed) = (schema.client(), 0);
            while !done.load(Ordering::Acquire) {
                killed += terminate(&mut client, schema);
            }
            killed
        });
        for chunk in (0..TASKS).collect::<Vec<_>>().chunks(20) {
            let mut tasks = Vec::new();
            let mut creates = Vec::new();
            for number in chunk {
                let id = TaskId::new(format!("task-{number}")).unwrap();
                let mut snapshot = TaskSnapshot::pending(id, "t", "me".into(), at);
                let trigger = Trigger::DependenciesResolved;
                let row = machine::apply(&mut snapshot, Status::Queued, trigger, at, None).unwrap();
                creates.push(Entry::Create {
                    snapshot: snapshot.clone().into(),
                    transitions: vec![row],
                });
                tasks.push(snapshot);
            }
            persist(&store, &creates, |answer| matches!(answer, Ok(()) | Err(EntryError::Exists)));
            let saves: Vec<Entry> = tasks
                .iter_mut()
                .map(|task| {
                    let expect_version = task.status_version();
                    let row =
                        machine::apply(task, Status::Stopped, Trigger::UserStop, at, None).unwrap();
                    let (snapshot, transitions) = (task.clone(), vec![row]);
                    Entry::Save {
                        snapshot: snapshot.into(),
                        expect_version,
                        transitions,
                        if_expired: None,
                    }
                })
                .collect();
            persist(&store, &saves, |answer| {
                matches!(answer, Ok(()) | Err(EntryError::Conflict { stored: 2 }))
            });
        }
        done.store(true, Ordering::Release);
        killer.join().unwrap()
    });
    assert!(killed > 0);
    let sql = format!(
        "SELECT count(*) FILTER (WHERE status_version = 2 AND rows = 2), count(*) FROM \
         (SELECT t.status_version, count(h.version) AS rows FROM \"{0}\".tasks t \
          LEFT JOIN \"{0}\".transitions h ON h.task_seq = t.seq GROUP BY t.seq) x",
        schema.name
    );
    let row = schema.client().query_one(&sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (TASKS as i64, TASKS as i64));
}

/// Writes until the store has it, as the product would.
fn persist(
    store: &PostgresStore,
    entries: &[Entry],
    accepted: impl Fn(&Result<(), EntryError>) -> bool,
) {
    loop {
        match store.write(entries) {
            Ok(answers) => {
                assert!(answers.iter().all(accepted), "{answers:?}");
                return;
            }
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
        }
    }
}

#[test]
fn two_who_write_the_same_tasks_in_other_orders_both_get_through() {
    let Some(schema) = Schema::fresh("two orders") else { return };
    let entries: Vec<Entry> = (0..200).map(|i| create(&format!("task-{i}"))).collect();
    let (forth, back) = (entries.clone(), entries.into_iter().rev().collect::<Vec<_>>());
    let (one, other) = (schema.connect(), schema.connect());
    let won = thread::scope(|scope| {
        let threads = [(one, forth), (other, back)].map(|(store, entries)| {
            scope.spawn(move || {
                let answers = store.write(&entries).unwrap();
                answers.into_iter().filter(Result::is_ok).count()
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(won.iter().sum::<usize>(), 200);
}

/// A save with a lease guard, which is several statements in one transaction, is held up in the middle of it
/// by a lock of ours; then this happens to its backend.
fn in_the_middle_of_a_transaction(test: &str, end: &str) {
    let Some(schema) = Schema::fresh(test) else { return };
    let store = named(&schema, schema.options());
    let at = Timestamp::from_micros(1_800_000_000_000_000);
    let mut task = TaskSnapshot::pending(TaskId::new("a").unwrap(), "t", "me".into(), at);
    task.supervisor = Some(IncarnationId::new("life-1").unwrap());
    let node = Node {
        owner: "me".into(),
        incarnation: IncarnationId::new("life-1").unwrap(),
        host: "h".into(),
        pid: 1,
        num_buckets: NonZeroU32::MIN,
        owned_buckets: None,
        artifacts: None,
        started_at: at,
    };
    store.beat(&node, Duration::from_secs(1), Now::At(at)).unwrap();
    store.write(&[Entry::Create { snapshot: task.clone().into(), transitions: vec![] }]).unwrap();
    let row = machine::apply(&mut task, Status::Stopped, Trigger::UserStop, at, None).unwrap();
    let late = Now::At(at.after(Duration::from_secs(60)));
    let (snapshot, transitions, if_expired) = (task.into(), vec![row], Some(late));
    let save = [Entry::Save { snapshot, expect_version: 0, transitions, if_expired }];

    let (mut holder, mut watch) = (schema.client(), schema.client());
    let mut lock = holder.transaction().unwrap();
    let sql = format!("SELECT 1 FROM \"{}\".nodes FOR UPDATE", schema.name);
    assert_eq!(lock.query(&sql, &[]).unwrap().len(), 1);
    let error = thread::scope(|scope| {
        let writer = scope.spawn(|| store.write(&save).unwrap_err());
        let waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = left($1, 63) \
                       AND wait_event_type = 'Lock'";
        let pid: i32 = loop {
            if let Some(row) = watch.query_opt(waiting, &[&schema.name]).unwrap() {
                break row.get(0);
            }
        };
        watch.query_one(end, &[&pid]).unwrap();
        writer.join().unwrap()
    });
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    // Nothing of it is left: neither its state nor its row nor, in the pool, its transaction.
    let id = TaskId::new("a").unwrap();
    assert_eq!(store.get(&id).unwrap().unwrap().status_version(), 0);
    assert_eq!(store.history(&id, 0, 9).unwrap(), vec![]);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = left($1, 63) \
                AND state LIKE 'idle in transaction%'";
    assert_eq!(watch.query_one(open, &[&schema.name]).unwrap().get::<_, i64>(0), 0);
    lock.rollback().unwrap();
    assert_eq!(store.write(&save).unwrap(), vec![Ok(())]);
    assert_eq!(store.history(&id, 0, 9).unwrap().len(), 1);
}

#[test]
fn a_backend_killed_within_a_transaction_leaves_nothing() {
    let end = "SELECT pg_terminate_backend($1)";
    in_the_middle_of_a_transaction("a killed transaction", end);
}

#[test]
fn a_statement_cancelled_within_a_transaction_leaves_nothing() {
    in_the_middle_of_a_transaction("a cancelled transaction", "SELECT pg_cancel_backend($1)");
}
