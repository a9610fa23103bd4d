//! The store under torture, seen as rows.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chongming_core::store::{Now, StoreError, TaskFilter, TaskQuery, TaskStore};
use chongming_store_postgres::PostgresStore;
use chongming_store_sqlite::SqliteStore;

use crate::history::{History, Node, Row, Task};

/// What `--db` names.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    /// As the command line takes it.
    pub(crate) fn parse(text: &str) -> Self {
        if text.starts_with("postgres") {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(PathBuf::from(text))
        }
    }

    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(dsn) => dsn.clone(),
        }
    }

    /// Does this process hold the lock under which the file is written? While it is frozen, nobody else can write.
    pub(crate) fn is_locked_by(&self, pid: u32) -> bool {
        let Self::Sqlite(file) = self else { return false };
        // SQLite's lock of a writer is this byte of the file that its processes share.
        const WRITER: &str = "120";
        let shared = file.with_extension("db-shm");
        let inode = std::fs::metadata(shared).map(|data| data.ino()).unwrap_or_default();
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words.as_slice(), [_, "POSIX", _, "WRITE", holder, place, WRITER, _]
                if *holder == pid.to_string() && place.ends_with(&format!(":{inode}")))
        })
    }

    /// Opens it, and makes it where it is not there.
    pub(crate) fn open(&self) -> Result<Arc<dyn TaskStore>, String> {
        let store: Result<Arc<dyn TaskStore>, _> = match self {
            Self::Sqlite(path) => {
                SqliteStore::open(path, chongming_store_sqlite::Options::default())
                    .map(|store| Arc::new(store) as _)
            }
            Self::Postgres(dsn) => {
                PostgresStore::connect(dsn, chongming_store_postgres::Options::default())
                    .map(|store| Arc::new(store) as _)
            }
        };
        store.map_err(|error| error.to_string())
    }

    /// Opens it as soon as it answers.
    pub(crate) fn await_open(&self, limit: Duration) -> Result<Arc<dyn TaskStore>, String> {
        let until = Instant::now() + limit;
        loop {
            match self.open() {
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
                result => return result,
            }
        }
    }
}

/// Fills in the rows: tasks with their trails, commands, nodes.
pub(crate) fn read(store: &dyn TaskStore, history: &mut History) -> Result<(), String> {
    let failed = |error: StoreError| error.to_string();
    let mut query = TaskQuery { filter: TaskFilter::default(), after: None, limit: 1000 };
    loop {
        let page = store.query(&query).map_err(failed)?;
        for task in page.tasks {
            let rows = store.history(&task.id, 0, 10_000).map_err(failed)?;
            let rows = rows.into_iter().map(|row| Row {
                version: row.version,
                from: row.from.as_str().to_owned(),
                to: row.to.as_str().to_owned(),
                at: row.at.as_micros(),
                trigger: row.trigger.as_str().to_owned(),
                reason: row.reason.map(|reason| reason.to_string()),
            });
            let commands = store.commands(&task.id).map_err(failed)?.into_iter();
            history.commands.extend(commands.filter_map(|c| Some(c.request.reason?.to_string())));
            history.tasks.push(Task {
                id: task.id.as_str().to_owned(),
                status: task.status().as_str().to_owned(),
                version: task.status_version(),
                supervisor: task.supervisor.as_ref().map(|life| life.as_str().to_owned()),
                rows: rows.collect(),
            });
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let nodes = store.nodes(Now::Store).map_err(failed)?;
    history.nodes.extend(nodes.into_iter().map(|row| {
        let node = Node { pid: row.node.pid, started: row.node.started_at.as_micros() };
        (row.node.incarnation.as_str().to_owned(), node)
    }));
    Ok(())
}
