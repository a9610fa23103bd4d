//! A command rings its holder, also when the listener's connection was lost in between.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chongming_core::store::{CommandKind, NewCommand, TaskStore};
use chongming_core::{CommandId, IncarnationId, TaskId, Timestamp};
use chongming_store_postgres::PostgresStore;

use crate::support::Schema;

/// Long enough for any machine: nothing waits for its end.
const LIMIT: Duration = Duration::from_secs(60);

fn holder() -> IncarnationId {
    IncarnationId::new("life-1").unwrap()
}

fn subscribe(store: &PostgresStore) -> Receiver<()> {
    let (sender, bell) = channel();
    let sender = Mutex::new(sender);
    store.subscribe(&holder(), Arc::new(move || sender.lock().unwrap().send(()).unwrap_or(())));
    bell
}

fn command(id: &str) -> NewCommand {
    NewCommand {
        id: CommandId::new(id).unwrap(),
        task_id: TaskId::new("a").unwrap(),
        holder: holder(),
        kind: CommandKind::Stop,
        reason: None,
        issuer: "me".into(),
        issued_at: Timestamp::from_micros(1),
    }
}

#[test]
fn a_command_rings_its_holder_in_another_store() {
    let Some(schema) = Schema::fresh("a doorbell") else { return };
    let (here, there) = (schema.connect(), schema.connect());
    let bell = subscribe(&here);
    // Once it listens, for what may have come before.
    bell.recv_timeout(LIMIT).unwrap();
    there.submit_command(&command("c")).unwrap();
    bell.recv_timeout(LIMIT).unwrap();
    here.close().unwrap();
    // The bell is given up with the store.
    while bell.recv_timeout(LIMIT).is_ok() {}
}

#[test]
fn a_listener_comes_back() {
    let Some(schema) = Schema::fresh("a doorbell that was cut off") else { return };
    let store = schema.connect();
    let bell = subscribe(&store);
    bell.recv_timeout(LIMIT).unwrap();
    let sql =
        "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE query = $1";
    let listen = format!("LISTEN \"{}\"", schema.name);
    let ended: i64 = schema.client().query_one(sql, &[&listen]).unwrap().get(0);
    assert_eq!(ended, 1);
    bell.recv_timeout(LIMIT).unwrap();
    store.submit_command(&command("c")).unwrap();
    bell.recv_timeout(LIMIT).unwrap();
}
