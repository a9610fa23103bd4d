//! A store on the embedded database `redb`, written by a stranger to this project, and the whole contract
//! suite on it.
//!
//! `cargo run -p chongming-contract --example redb_store` prints the report of all clauses;
//! `cargo test -p chongming-contract --example redb_store` runs a test for each of them. What it teaches is
//! told in `docs/store-guide.md`.

mod store;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chongming_contract::{Data, Fixture};
use chongming_core::store::TaskStore;
#[cfg(test)]
use chongming_core::{Controller, Submit, TaskContext, TaskDefinition, TaskError};
use redb::Database;

use store::RedbStore;

// guide: report
fn main() -> Result<(), Box<dyn Error>> {
    let report = chongming_contract::run(&OnDisk);
    print!("{report}");
    match report.broken().as_slice() {
        [] => Ok(()),
        broken => Err(format!("broken: {}", broken.join(", ")).into()),
    }
}
// guide: end

// guide: fixture
/// Makes places for data: a folder each, removed in the end.
struct OnDisk;

struct Place {
    folder: tempfile::TempDir,
    /// `redb` locks its file, so all connections of this process share one handle. It is opened again once
    /// nobody holds it any more.
    handle: Mutex<Weak<Database>>,
}

impl Fixture for OnDisk {
    fn fresh(&self) -> Box<dyn Data> {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
        Box::new(Place { folder, handle: Mutex::default() })
    }
}

impl Data for Place {
    fn connect(&self) -> Arc<dyn TaskStore> {
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let database = handle.upgrade().unwrap_or_else(|| {
            let opened = RedbStore::create(&self.folder.path().join("tasks.redb"));
            opened.unwrap_or_else(|error| panic!("{error}"))
        });
        *handle = Arc::downgrade(&database);
        Arc::new(RedbStore::on(database))
    }

    fn outlives_close(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod clauses {
    use super::*;
    chongming_contract::contract_tests!(OnDisk);
}
// guide: end

// guide: use
#[test]
fn a_controller_runs_on_it() -> Result<(), Box<dyn Error>> {
    let greet = |_: &TaskContext, name: String| Ok::<_, TaskError>(format!("hello {name}"));
    let place = OnDisk.fresh();
    let controller = Controller::builder()
        .store(place.connect())
        .register(TaskDefinition::new("greet", greet))
        .build()?;
    let run = controller.submit(Submit::new("greet").args("you".to_owned()))?;
    assert!(run.wait(None)?.ok());
    assert_eq!(controller.history(run.id())?.len(), 4);
    Ok(())
}
// guide: end
