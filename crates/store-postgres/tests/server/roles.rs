//! Roles with fewer rights than the owner of the tables.

use std::time::Duration;

use chongming_core::store::{
    CommandKind, NewCommand, Now, PruneRequest, Receipt, ReceiptKind, StoreErrorKind, TaskQuery,
    TaskStore,
};
use chongming_core::{CommandId, IncarnationId, TaskId, Timestamp};
use chongming_store_postgres::PostgresStore;

use crate::support::{Schema, create, error, total};

/// A role named like the schema, dropped with it.
struct Role<'a>(&'a Schema);

impl<'a> Role<'a> {
    fn granted(schema: &'a Schema, rights: &str) -> Self {
        let name = &schema.name;
        let mut sql = format!("CREATE ROLE \"{name}\" LOGIN;");
        if !rights.is_empty() {
            sql.push_str(&format!(
                "GRANT USAGE ON SCHEMA \"{name}\" TO \"{name}\";
                 GRANT {rights} ON ALL TABLES IN SCHEMA \"{name}\" TO \"{name}\";"
            ));
        }
        schema.client().batch_execute(&sql).unwrap();
        Self(schema)
    }

    fn dsn(&self) -> String {
        self.0.dsn.replace("//postgres@", &format!("//{}@", self.0.name))
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let name = &self.0.name;
        let sql = format!("DROP OWNED BY \"{name}\"; DROP ROLE \"{name}\"");
        self.0.client().batch_execute(&sql).unwrap();
    }
}

fn command() -> NewCommand {
    NewCommand {
        id: CommandId::new("c").unwrap(),
        task_id: TaskId::new("a").unwrap(),
        holder: IncarnationId::new("life-1").unwrap(),
        kind: CommandKind::Stop,
        reason: None,
        issuer: "me".into(),
        issued_at: Timestamp::from_micros(1),
    }
}

#[test]
fn who_may_not_make_tables_works_where_they_are() {
    let Some(schema) = Schema::fresh("a role without DDL") else { return };
    schema.connect().close().unwrap();
    let role = Role::granted(&schema, "SELECT, INSERT, UPDATE, DELETE");
    let store = PostgresStore::connect(&role.dsn(), schema.options()).unwrap();
    assert_eq!(store.write(&[create("a")]).unwrap(), vec![Ok(())]);
    store.submit_command(&command()).unwrap();
    let holder = command().holder;
    let claimed = store.claim_commands(&holder, 9, Duration::from_secs(9), Now::Store).unwrap();
    assert_eq!(claimed.len(), 1);
    let receipt = Receipt::new(ReceiptKind::Applied, "done");
    assert!(store.complete_command(&command().id, &receipt, Now::Store).unwrap());
    assert_eq!(store.pin("fact", "value").unwrap(), "value");
    let request = PruneRequest { before: Timestamp::from_micros(2), limit: 9, dry_run: false };
    store.prune(&request, Now::Store).unwrap();
}

#[test]
fn who_may_not_make_tables_is_told_so() {
    let Some(schema) = Schema::fresh("a role without DDL and tables") else { return };
    let role = Role::granted(&schema, "");
    let error = error(PostgresStore::connect(&role.dsn(), schema.options()));
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("ask its owner for the rights"), "{error}");
}

#[test]
fn who_may_not_write_is_told_so_at_opening() {
    let Some(schema) = Schema::fresh("a role that may not write") else { return };
    schema.connect().close().unwrap();
    let refused = |role: &Role<'_>, words: &str| {
        let error = error(PostgresStore::connect(&role.dsn(), schema.options()));
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        PostgresStore::connect_existing(&role.dsn(), schema.options()).unwrap();
    };
    for rights in ["SELECT", "SELECT, INSERT", "SELECT, UPDATE"] {
        refused(&Role::granted(&schema, rights), "ask its owner for the rights");
    }
    let role = Role::granted(&schema, "SELECT, INSERT, UPDATE");
    PostgresStore::connect(&role.dsn(), schema.options()).unwrap();
    let sql = format!("ALTER ROLE \"{}\" SET default_transaction_read_only = on", schema.name);
    schema.client().batch_execute(&sql).unwrap();
    refused(&role, "can only be read");
}

#[test]
fn tables_that_others_hold_are_no_matter_of_rights() {
    let Some(schema) = Schema::fresh("tables that others hold") else { return };
    schema.connect().close().unwrap();
    let mut other = schema.client();
    let lock = format!("BEGIN; LOCK TABLE \"{}\".tasks IN EXCLUSIVE MODE", schema.name);
    other.batch_execute(&lock).unwrap();
    schema.connect();
}

#[test]
fn who_may_only_read_sees_everything() {
    let Some(schema) = Schema::fresh("a role that only reads") else { return };
    let owner = schema.connect();
    owner.write(&[create("a")]).unwrap();
    let role = Role::granted(&schema, "SELECT");
    let store = PostgresStore::connect_existing(&role.dsn(), schema.options()).unwrap();
    let (id, holder) = (TaskId::new("a").unwrap(), command().holder);
    assert!(store.get(&id).unwrap().is_some());
    let query = TaskQuery { filter: Default::default(), after: None, limit: 9 };
    assert_eq!(store.query(&query).unwrap().tasks.len(), 1);
    assert_eq!(total(&store), 1);
    assert_eq!(store.history(&id, 0, 9).unwrap(), vec![]);
    assert_eq!(store.commands(&id).unwrap(), vec![]);
    assert_eq!(store.nodes(Now::Store).unwrap(), vec![]);
    assert_eq!(store.pinned("fact").unwrap(), None);
    for refused in [
        store.write(&[create("b")]).map(drop),
        store.submit_command(&command()),
        store.claim_commands(&holder, 9, Duration::from_secs(9), Now::Store).map(drop),
        store.pin("fact", "value").map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Denied);
    }
    // The connection has not suffered, and nothing was written.
    assert_eq!(total(&store), 1);
}
