//! Building a controller, and everything that is checked before it starts (spec 3, 8).

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::bucket::{BucketSet, DEFAULT_NUM_BUCKETS};
use crate::controller::Controller;
use crate::controller::engine::{Engine, Options};
use crate::controller::guarded::Core;
use crate::controller::journal::Journal;
use crate::controller::lease::MIN_LEASE_TTL;
use crate::executor::{Executor, ThreadExecutor};
use crate::id::IncarnationId;
use crate::memory_store::InMemoryStore;
use crate::ownership::{Ownership, OwnershipError};
use crate::scheduler::{Limits, Scheduler};
use crate::store::{FACT_NUM_BUCKETS, Node, StoreError, TaskStore};
use crate::task::{Registry, RegistryError, TaskDefinition};
use crate::text::{InvalidText, Text, check_text};
use crate::time::{Clock, SystemClock};

/// A controller that cannot be built as told.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// No slot at all.
    NoSlots,
    /// Buckets that do not fit.
    Ownership(OwnershipError),
    /// The store was made with another bucket count.
    NumBuckets {
        /// What was asked for.
        given: u32,
        /// What the store has.
        stored: u32,
    },
    /// The store has a bucket count that makes no sense.
    StoredNumBuckets(String),
    /// A definition that cannot be registered.
    Registry(RegistryError),
    /// An owner that is no valid text.
    Text(InvalidText),
    /// The lease is shorter than it can be renewed.
    LeaseTooShort(Duration),
    /// The store cannot be read.
    Store(StoreError),
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlots => f.write_str("max_parallel is 0; at least 1 task must be able to run"),
            Self::Ownership(error) => error.fmt(f),
            Self::NumBuckets { given, stored } => write!(
                f,
                "num_buckets is {given}, but this store was made with {stored}; \
                 leave it out or give {stored}"
            ),
            Self::StoredNumBuckets(found) => {
                write!(f, "the store says that it has {found:?} buckets, which is no count")
            }
            Self::Registry(error) => error.fmt(f),
            Self::Text(error) => error.fmt(f),
            Self::LeaseTooShort(ttl) => {
                write!(
                    f,
                    "a lease of {ttl:?} is too short to be renewed in time; give at least 100ms"
                )
            }
            Self::Store(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "a thread could not be started: {error}"),
        }
    }
}

impl std::error::Error for ConfigurationError {}

macro_rules! from {
    ($($source:ty => $variant:ident;)+) => {$(
        impl From<$source> for ConfigurationError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

from! {
    OwnershipError => Ownership;
    RegistryError => Registry;
    InvalidText => Text;
    StoreError => Store;
}

/// The store's bucket count: its own where it has one, else the given one, else 64 (spec 3).
///
/// # Errors
/// The store cannot be read, or its count differs from the given one.
pub fn resolve_num_buckets(
    store: &dyn TaskStore,
    given: Option<NonZeroU32>,
) -> Result<NonZeroU32, ConfigurationError> {
    match store.pinned(FACT_NUM_BUCKETS)? {
        Some(stored) => check_num_buckets(&stored, given),
        None => Ok(given.unwrap_or(DEFAULT_NUM_BUCKETS)),
    }
}

pub(super) fn check_num_buckets(
    stored: &str,
    given: Option<NonZeroU32>,
) -> Result<NonZeroU32, ConfigurationError> {
    let count: NonZeroU32 =
        stored.parse().map_err(|_| ConfigurationError::StoredNumBuckets(stored.to_owned()))?;
    match given {
        Some(given) if given != count => {
            Err(ConfigurationError::NumBuckets { given: given.get(), stored: count.get() })
        }
        Some(_) | None => Ok(count),
    }
}

/// Sets a controller up. Everything has a sensible default: an in-memory store, threads, one slot for
/// each processor.
pub struct ControllerBuilder {
    store: Option<Arc<dyn TaskStore>>,
    executor: Option<Arc<dyn Executor>>,
    clock: Option<Arc<dyn Clock>>,
    registry: Registry,
    refused: Option<RegistryError>,
    limits: Limits,
    owner: Option<Text>,
    num_buckets: Option<NonZeroU32>,
    owned_buckets: Option<BucketSet>,
    artifacts: Option<PathBuf>,
    grace: Duration,
    lease_ttl: Duration,
    poll_interval: Duration,
    store_patience: Duration,
    buffer: usize,
}

impl Default for ControllerBuilder {
    fn default() -> Self {
        Self {
            store: None,
            executor: None,
            clock: None,
            registry: Registry::default(),
            refused: None,
            limits: Limits::default(),
            owner: None,
            num_buckets: None,
            owned_buckets: None,
            artifacts: None,
            grace: Duration::from_secs(10),
            lease_ttl: Duration::from_secs(30),
            poll_interval: Duration::from_millis(100),
            store_patience: Duration::from_secs(5),
            buffer: 100_000,
        }
    }
}

impl ControllerBuilder {
    /// Where tasks are kept.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Who carries bodies.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = Some(executor);
        self
    }

    /// Where time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Adds a definition.
    #[must_use]
    pub fn register(mut self, definition: TaskDefinition) -> Self {
        if let Err(error) = self.registry.register(definition) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// How many tasks may be on carriers at once.
    #[must_use]
    pub fn max_parallel(mut self, slots: usize) -> Self {
        self.limits.max_parallel = slots;
        self
    }

    /// How many of them in one bucket.
    #[must_use]
    pub fn max_parallel_per_bucket(mut self, slots: usize) -> Self {
        self.limits.max_parallel_per_bucket = Some(slots);
        self
    }

    /// How many of them with this tag.
    #[must_use]
    pub fn resource(mut self, tag: impl Into<Text>, permits: usize) -> Self {
        self.limits.resources.insert(tag.into(), permits);
        self
    }

    /// Who runs this controller; `host:pid` by default.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<Text>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The store's bucket count. Must agree with the store's, where that has one.
    #[must_use]
    pub fn num_buckets(mut self, count: NonZeroU32) -> Self {
        self.num_buckets = Some(count);
        self
    }

    /// The buckets that this node declares as its own.
    #[must_use]
    pub fn owned_buckets(mut self, buckets: BucketSet) -> Self {
        self.owned_buckets = Some(buckets);
        self
    }

    /// Folder for logs and artifacts; without one, none are kept.
    #[must_use]
    pub fn artifacts(mut self, root: impl Into<PathBuf>) -> Self {
        self.artifacts = Some(root.into());
        self
    }

    /// Time that a stop may take before it becomes a kill, or the task `lost`. Default 10 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long this node counts as alive after its last sign of life. Default 30 s.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// How often the store is asked for commands, where it cannot ring. Default 100 ms.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// How long a write may stay unanswered before the store counts as down. Default 5 s.
    #[must_use]
    pub fn store_patience(mut self, patience: Duration) -> Self {
        self.store_patience = patience;
        self
    }

    /// How many transitions are kept for a store that is down. Default 100,000.
    #[must_use]
    pub fn buffer(mut self, transitions: usize) -> Self {
        self.buffer = transitions;
        self
    }

    /// Checks everything and starts the controller.
    ///
    /// # Errors
    /// [`ConfigurationError`] says what does not fit.
    pub fn build(self) -> Result<Controller, ConfigurationError> {
        if let Some(error) = self.refused {
            return Err(error.into());
        }
        if self.limits.max_parallel == 0 {
            return Err(ConfigurationError::NoSlots);
        }
        if self.lease_ttl < MIN_LEASE_TTL {
            return Err(ConfigurationError::LeaseTooShort(self.lease_ttl));
        }
        if let Some(owner) = &self.owner {
            check_text("owner", owner)?;
        }
        let store = self.store.unwrap_or_else(|| Arc::new(InMemoryStore::new()));
        let num_buckets = resolve_num_buckets(&*store, self.num_buckets)?;
        let ownership = Ownership::new(num_buckets, self.owned_buckets)?;
        let clock: Arc<dyn Clock> = self.clock.unwrap_or_else(|| Arc::new(SystemClock::default()));
        let (host, pid) = (host_name(), std::process::id());
        let node = Node {
            owner: self.owner.unwrap_or_else(|| format!("{host}:{pid}").into()),
            incarnation: IncarnationId::generate(),
            host,
            pid,
            num_buckets,
            owned_buckets: ownership.declared().cloned(),
            artifacts: self.artifacts.as_ref().map(|path| path.to_string_lossy().into()),
            started_at: clock.wall(),
        };
        let seed = clock.wall().as_micros().unsigned_abs() ^ (u64::from(pid) << 32);
        let core = Core::new(
            Scheduler::new(&self.limits, seed),
            Journal::new(self.store_patience, self.buffer),
        );
        let options = Options {
            grace: self.grace,
            lease_ttl: self.lease_ttl,
            patience: self.store_patience,
            poll_interval: self.poll_interval,
            artifacts: self.artifacts,
        };
        let engine = Arc::new(Engine::new(
            store,
            self.executor.unwrap_or_else(|| Arc::new(ThreadExecutor::new())),
            clock,
            self.registry,
            ownership,
            node,
            options,
            core,
        ));
        let (writer, ticker) = (Arc::clone(&engine), Arc::clone(&engine));
        let spawn = |name: &str, life: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.into()).spawn(life).map_err(ConfigurationError::Thread)
        };
        let writer = spawn("task-writer", Box::new(move || writer.write()))?;
        if let Err(error) = spawn("task-ticker", Box::new(move || ticker.tick())) {
            engine.end_threads();
            return Err(error);
        }
        if engine.ownership.declared().is_some() {
            engine.become_node();
        }
        Ok(Controller::started(engine, writer))
    }
}

/// The machine's name as node rows have it: from where Unix keeps it; `localhost` where there is none.
#[must_use]
pub fn host_name() -> Text {
    let read = |path| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "localhost".into(),
        name => name.replace('\0', "").into(),
    }
}
