//! Opens the store that `--db` names: the only place that knows which stores there are. Buckets are
//! checked here too, before a command does anything with its store (spec 3).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chongming_core::store::{StoreError, TaskStore};
use chongming_core::{ConfigurationError, DEFAULT_NUM_BUCKETS, Ownership, resolve_num_buckets};

use crate::args::global::Settings;
use crate::database::Database;
use crate::error::CliError;

/// A store, and the buckets of this command in it.
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: Arc<dyn TaskStore>,
    /// The store's bucket count with the owned ones, found to fit each other.
    pub(crate) ownership: Ownership,
}

/// Opens a store that exists: for every command that only reads or asks.
pub(crate) fn open(settings: &Settings) -> Result<Opened, CliError> {
    checked(connect(&settings.database, false)?, settings)
}

/// Opens a store to run tasks on, unless it has to be made first: nothing is made before all else was
/// found right.
#[cfg(feature = "process")]
pub(crate) fn open_unless_missing(settings: &Settings) -> Result<Option<Opened>, CliError> {
    if is_there(&settings.database) {
        return create(settings).map(Some);
    }
    unpinned(settings)?;
    Ok(None)
}

/// Opens a store to run tasks on, and makes it where there is none.
#[cfg(feature = "process")]
pub(crate) fn create(settings: &Settings) -> Result<Opened, CliError> {
    checked(connect(&settings.database, true)?, settings)
}

/// Checks the buckets for a command that needs no store: against the store's count if there is one.
pub(crate) fn check_buckets(settings: &Settings) -> Result<(), CliError> {
    if settings.num_buckets.is_none() && settings.owned_buckets.is_none() {
        return Ok(());
    }
    match connect(&settings.database, false) {
        Ok(store) => checked(store, settings).map(drop),
        Err(_) => unpinned(settings).map(drop),
    }
}

/// Where logs and artifacts lie unless said otherwise (spec 14): beside a file, or in the user's state
/// folder for a server.
pub(crate) fn default_artifacts(database: &Database) -> Result<PathBuf, CliError> {
    let folder = match database {
        Database::Sqlite(path) => {
            let mut folder = path.clone().into_os_string();
            folder.push(".artifacts");
            PathBuf::from(folder)
        }
        Database::Postgres(_) => state_folder()?.join("chongming-task"),
    };
    absolute(&folder)
}

/// The path from the root: node rows are read in other folders than they are written in.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| {
        CliError::new(format!("cannot tell where {} lies: {error}", path.display()))
    })
}

/// What the store failed at, for the user.
pub(crate) fn store_error(error: StoreError) -> CliError {
    CliError::new(error.to_string())
}

fn checked(store: Arc<dyn TaskStore>, settings: &Settings) -> Result<Opened, CliError> {
    let num_buckets =
        resolve_num_buckets(&*store, settings.num_buckets).map_err(|error| match error {
            ConfigurationError::Store(error) => store_error(error),
            other => CliError::new(format!("--num-buckets: {other}")),
        })?;
    let ownership = settings.ownership(num_buckets)?;
    Ok(Opened { store, ownership })
}

fn unpinned(settings: &Settings) -> Result<Ownership, CliError> {
    settings.ownership(settings.num_buckets.unwrap_or(DEFAULT_NUM_BUCKETS))
}

/// Is there something that a database could be? An empty file is none yet.
#[cfg(feature = "process")]
fn is_there(database: &Database) -> bool {
    match database {
        Database::Sqlite(path) => std::fs::metadata(path).is_ok_and(|found| found.len() > 0),
        Database::Postgres(_) => true,
    }
}

fn state_folder() -> Result<PathBuf, CliError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/state"));
    variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home).ok_or_else(|| {
        CliError::new("neither XDG_STATE_HOME nor HOME says where logs are to be kept")
            .hint("name a folder with --artifacts")
    })
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &Path, make: bool) -> Result<Arc<dyn TaskStore>, CliError> {
    use chongming_store_sqlite::{Options, SqliteStore};

    let options = Options::default();
    let store = if make {
        SqliteStore::open(path, options)
    } else {
        SqliteStore::open_existing(path, options)
    };
    Ok(Arc::new(store.map_err(store_error)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(path: &Path, _: bool) -> Result<Arc<dyn TaskStore>, CliError> {
    Err(missing(&Database::Sqlite(path.to_owned()), "sqlite"))
}

#[cfg(feature = "postgres")]
fn postgres(address: &str, make: bool) -> Result<Arc<dyn TaskStore>, CliError> {
    use chongming_store_postgres::{Options, PostgresStore};

    let options = Options::default();
    let store = if make {
        PostgresStore::connect(address, options)
    } else {
        PostgresStore::connect_existing(address, options)
    };
    Ok(Arc::new(store.map_err(store_error)?))
}

#[cfg(not(feature = "postgres"))]
fn postgres(address: &str, _: bool) -> Result<Arc<dyn TaskStore>, CliError> {
    Err(missing(&Database::Postgres(address.to_owned()), "postgres"))
}

fn connect(database: &Database, make: bool) -> Result<Arc<dyn TaskStore>, CliError> {
    match database {
        Database::Sqlite(path) => sqlite(path, make),
        Database::Postgres(address) => postgres(address, make),
    }
}

/// What is said when this program was built without the store that a database needs.
#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
fn missing(database: &Database, feature: &str) -> CliError {
    CliError::without_feature(format_args!("open {database}"), feature).hint("or another database")
}
