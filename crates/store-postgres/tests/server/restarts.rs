//! A server that goes away and comes back under load: nothing is lost, and each change has its row.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use chongming_core::store::{Entry, EntryError, StoreErrorKind, TaskQuery, TaskStore};
use chongming_core::{
    CloseMode, Controller, Status, Submit, TaskContext, TaskDefinition, TaskError, TaskId,
    TaskSnapshot, Timestamp, Trigger, machine,
};
use chongming_store_postgres::{Options, PostgresStore};
use chongming_test_postgres::{Server, Stop};

use crate::support::own_server;

fn connect(server: &Server) -> PostgresStore {
    let dsn = format!("{}&connect_timeout=1", server.dsn());
    PostgresStore::connect(&dsn, Options::default()).unwrap()
}

const STOPS: [Stop; 3] = [Stop::Immediate, Stop::Fast, Stop::Immediate];

/// All tasks of the store.
fn all(store: &PostgresStore) -> Vec<TaskSnapshot> {
    let query = TaskQuery { filter: Default::default(), after: None, limit: 10_000 };
    store.query(&query).unwrap().tasks
}

/// Writes until the store has it, as the product would.
fn persist(store: &PostgresStore, entry: Entry, repeated: &EntryError) {
    loop {
        match store.write(std::slice::from_ref(&entry)) {
            Ok(answers) => match answers.as_slice() {
                [Ok(())] => return,
                // It was written, and the answer was lost.
                [Err(answer)] if answer == repeated => return,
                other => panic!("{other:?}"),
            },
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
        }
    }
}

#[test]
fn a_writer_outlasts_restarts() {
    const TASKS: usize = 400;
    let Some((_folder, mut server)) = own_server("a writer and restarts") else { return };
    let store = connect(&server);
    let at = Timestamp::from_micros(1_800_000_000_000_000);
    let (say, hear) = mpsc::channel();
    thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            for number in 0..TASKS {
                let id = TaskId::new(format!("task-{number}")).unwrap();
                let mut task = TaskSnapshot::pending(id, "t", "me".into(), at);
                let queued = Trigger::DependenciesResolved;
                let row = machine::apply(&mut task, Status::Queued, queued, at, None).unwrap();
                let snapshot = task.clone();
                let create = Entry::Create { snapshot: snapshot.into(), transitions: vec![row] };
                persist(store, create, &EntryError::Exists);
                let stop = Trigger::UserStop;
                let row = machine::apply(&mut task, Status::Stopped, stop, at, None).unwrap();
                let (snapshot, transitions) = (task.into(), vec![row]);
                let save =
                    Entry::Save { snapshot, expect_version: 1, transitions, if_expired: None };
                persist(store, save, &EntryError::Conflict { stored: 2 });
                say.send(number).unwrap();
            }
        });
        // Each stop comes in the middle of work, wherever the writer is by then.
        for (stop, after) in STOPS.into_iter().zip([50, 150, 250]) {
            while hear.recv().unwrap() < after {}
            server.stop(stop);
            server.start().unwrap();
        }
        assert_eq!(hear.into_iter().last(), Some(TASKS - 1));
    });
    let tasks = all(&store);
    assert_eq!(tasks.len(), TASKS);
    for task in tasks {
        assert_eq!((task.status(), task.status_version()), (Status::Stopped, 2), "{}", task.id);
        let rows = store.history(&task.id, 0, 10).unwrap();
        let versions: Vec<u64> = rows.iter().map(|row| row.version).collect();
        assert_eq!(versions, [1, 2], "{}", task.id);
    }
}

#[test]
fn a_controller_outlasts_restarts() {
    const TASKS: usize = 300;
    let Some((_folder, mut server)) = own_server("a controller and restarts") else { return };
    let (say, hear) = mpsc::channel();
    let body = move |_: &TaskContext, number: u64| {
        say.send(())?;
        Ok::<_, TaskError>(number)
    };
    let controller = Controller::builder()
        .store(Arc::new(connect(&server)))
        .max_parallel(8)
        .register(TaskDefinition::new("count", body))
        .build()
        .unwrap();
    thread::scope(|scope| {
        let controller = &controller;
        scope.spawn(move || {
            for number in 0..TASKS as u64 {
                controller.submit(Submit::new("count").args(number)).unwrap();
            }
        });
        for (stop, bodies) in STOPS.into_iter().zip([50, 100, 100]) {
            (0..bodies).for_each(|_| hear.recv().unwrap());
            server.stop(stop);
            server.start().unwrap();
        }
    });
    controller.wait_all(None).unwrap();
    assert_eq!(controller.desynced_tasks(), []);
    let closed = controller.close(CloseMode::Wait, Duration::from_secs(30), true);
    assert_eq!((closed.unfinished, closed.unwritten), (0, 0));
    let store = connect(&server);
    let tasks = all(&store);
    assert_eq!(tasks.len(), TASKS);
    for task in tasks {
        assert_eq!(task.status(), Status::Succeeded, "{}", task.id);
        let rows = store.history(&task.id, 0, 10).unwrap();
        let versions: Vec<u64> = rows.iter().map(|row| row.version).collect();
        assert_eq!(versions, [1, 2, 3, 4], "{}", task.id);
    }
}
