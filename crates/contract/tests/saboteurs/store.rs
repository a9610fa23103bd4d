//! A store that keeps its promises, but for the one that a fault breaks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chongming_contract::{Data, Fixture};
use chongming_core::store::*;
use chongming_core::{
    CommandId, InMemoryStore, IncarnationId, Progress, TaskId, TaskSnapshot, Timestamp, Transition,
};

/// A `#[test]` for each saboteur, with the clauses that it must be caught by.
///
/// `clause, clause / saboteur: field = function;` — `field` is the call of [`Fault`] that goes wrong.
macro_rules! saboteurs {
    ($($($clause:ident),+ / $saboteur:ident: $field:ident = $wrong:expr;)+) => {
        pub(crate) const CLAUSES: &[(&str, &str)] = &[$($((module_path!(), stringify!($clause)),)+)+];

        $(
            #[test]
            fn $saboteur() {
                let fault = $crate::store::Fault { $field: $wrong, ..$crate::store::HONEST };
                $($crate::assert_caught(module_path!(), stringify!($clause), fault);)+
            }
        )+
    };
}

pub(crate) type Refusable = Result<(), EntryError>;
pub(crate) type Answer<T> = Result<T, StoreError>;

/// What is done by each call that somebody may want to spoil.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) connect: fn(&Shared, Fault) -> Store,
    pub(crate) write: fn(&Store, &[Entry]) -> Answer<Vec<Refusable>>,
    pub(crate) get: fn(&Store, &TaskId) -> Answer<Option<TaskSnapshot>>,
    pub(crate) query: fn(&Store, &TaskQuery) -> Answer<TaskPage>,
    pub(crate) count: fn(&Store, &TaskFilter) -> Answer<Vec<Count>>,
    pub(crate) history: fn(&Store, &TaskId, u64, usize) -> Answer<Vec<Transition>>,
    pub(crate) submit: fn(&Store, &NewCommand) -> Answer<()>,
    pub(crate) claim: fn(&Store, &IncarnationId, usize, Duration, Now) -> Answer<Vec<Command>>,
    pub(crate) complete: fn(&Store, &CommandId, &Receipt, Now) -> Answer<bool>,
    pub(crate) release: fn(&Store, &CommandId) -> Answer<bool>,
    pub(crate) commands: fn(&Store, &TaskId) -> Answer<Vec<Command>>,
    pub(crate) beat: fn(&Store, &Node, Duration, Now) -> Answer<Beat>,
    pub(crate) retire: fn(&Store, &IncarnationId, Now) -> Answer<()>,
    pub(crate) nodes: fn(&Store, Now) -> Answer<Vec<NodeRow>>,
    pub(crate) pin: fn(&Store, &str, &str) -> Answer<String>,
    pub(crate) pinned: fn(&Store, &str) -> Answer<Option<String>>,
    pub(crate) prune: fn(&Store, &PruneRequest, Now) -> Answer<Pruned>,
    pub(crate) close: fn(&Store) -> Answer<()>,
    /// Is the store closed, as a call sees it?
    pub(crate) is_closed: fn(&Store, &'static str) -> bool,
}

/// Nothing goes wrong.
pub(crate) const HONEST: Fault = Fault {
    connect: Store::on,
    write: |store, entries| store.memory.write(entries),
    get: |store, id| store.memory.get(id),
    query: |store, query| store.memory.query(query),
    count: |store, filter| store.memory.count(filter),
    history: |store, id, after, limit| store.memory.history(id, after, limit),
    submit: |store, command| store.memory.submit_command(command),
    claim: |store, holder, limit, lease, now| {
        store.memory.claim_commands(holder, limit, lease, now)
    },
    complete: |store, id, receipt, now| store.memory.complete_command(id, receipt, now),
    release: |store, id| store.memory.release_command(id),
    commands: |store, task| store.memory.commands(task),
    beat: |store, node, ttl, now| store.memory.beat(node, ttl, now),
    retire: |store, incarnation, now| store.memory.retire(incarnation, now),
    nodes: |store, now| store.memory.nodes(now),
    pin: |store, fact, value| store.memory.pin(fact, value),
    pinned: |store, fact| store.memory.pinned(fact),
    prune: |store, request, now| store.memory.prune(request, now),
    close: |store| {
        store.closed.store(true, Ordering::SeqCst);
        Ok(())
    },
    is_closed: |store, _| store.closed.load(Ordering::SeqCst),
};

/// Stores with this fault.
pub(crate) struct Sabotaged(pub(crate) Fault);

/// What the stores on one place share.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) memory: Arc<InMemoryStore>,
    pub(crate) notes: Arc<Notes>,
}

/// What a fault may remember.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) calls: AtomicUsize,
    /// All that was ever handed to `write`.
    pub(crate) entries: Mutex<Vec<Entry>>,
    /// All that was ever handed in.
    pub(crate) requests: Mutex<Vec<NewCommand>>,
    /// All that was ever claimed.
    pub(crate) claimed: Mutex<Vec<Command>>,
    /// Each first lease of a node.
    pub(crate) leases: Mutex<Vec<(IncarnationId, Timestamp)>>,
}

struct Place(Shared, Fault);

/// One connection.
pub(crate) struct Store {
    pub(crate) memory: Arc<InMemoryStore>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) closed: AtomicBool,
    fault: Fault,
}

impl Fixture for Sabotaged {
    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Place(Shared::default(), self.0))
    }
}

impl Data for Place {
    fn connect(&self) -> Arc<dyn TaskStore> {
        Arc::new((self.1.connect)(&self.0, self.1))
    }

    fn outlives_close(&self) -> bool {
        true
    }
}

impl Notes {
    /// The number of this call, from 1.
    pub(crate) fn call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap()
    }

    /// What the latest save of the task wanted to write.
    pub(crate) fn last_save(&self, id: &TaskId) -> Option<TaskSnapshot> {
        self.entries().iter().rev().find_map(|entry| match entry {
            Entry::Save { snapshot, .. } if snapshot.id == *id => Some((**snapshot).clone()),
            _ => None,
        })
    }
}

impl Store {
    pub(crate) fn on(shared: &Shared, fault: Fault) -> Self {
        let Shared { memory, notes } = shared.clone();
        Self { memory, notes, closed: AtomicBool::new(false), fault }
    }

    /// Writes one entry, honestly.
    pub(crate) fn put(&self, entry: Entry) -> Refusable {
        self.memory.write(&[entry]).unwrap().remove(0)
    }

    /// Writes entries as `change` makes them.
    pub(crate) fn changed(
        &self,
        entries: &[Entry],
        change: impl Fn(&mut Entry),
    ) -> Answer<Vec<Refusable>> {
        let mut entries = entries.to_vec();
        entries.iter_mut().for_each(change);
        self.memory.write(&entries)
    }

    /// The same, for the states that creates and saves write.
    pub(crate) fn with_states(
        &self,
        entries: &[Entry],
        change: impl Fn(&mut TaskSnapshot),
    ) -> Answer<Vec<Refusable>> {
        self.changed(entries, |entry| match entry {
            Entry::Create { snapshot, .. } | Entry::Save { snapshot, .. } => {
                change(Arc::make_mut(snapshot))
            }
            Entry::Touch(_) => {}
        })
    }

    /// Writes entries one by one; `wrong` sees each with the task that is stored, and may answer itself.
    pub(crate) fn one_by_one(
        &self,
        entries: &[Entry],
        wrong: impl Fn(&Entry, Option<TaskSnapshot>) -> Option<Refusable>,
    ) -> Answer<Vec<Refusable>> {
        entries
            .iter()
            .map(|entry| {
                let stored = self.memory.get(entry.task_id())?;
                Ok(wrong(entry, stored).unwrap_or_else(|| self.put(entry.clone())))
            })
            .collect()
    }

    /// All tasks that match, newest first.
    pub(crate) fn all(&self, filter: &TaskFilter) -> Vec<TaskSnapshot> {
        let query = TaskQuery { filter: filter.clone(), after: None, limit: usize::MAX };
        self.memory.query(&query).unwrap().tasks
    }

    /// A page of tasks that match a filter as `change` makes it.
    pub(crate) fn filtered(
        &self,
        query: &TaskQuery,
        change: impl Fn(&mut TaskFilter),
    ) -> Answer<TaskPage> {
        let mut query = query.clone();
        change(&mut query.filter);
        self.memory.query(&query)
    }

    fn open(&self, operation: &'static str) -> Answer<&Fault> {
        match (self.fault.is_closed)(self, operation) {
            true => Err(StoreError::closed(operation)),
            false => Ok(&self.fault),
        }
    }
}

pub(crate) fn save(
    snapshot: impl Into<Arc<TaskSnapshot>>,
    expect_version: u64,
    transitions: Vec<Transition>,
) -> Entry {
    Entry::Save { snapshot: snapshot.into(), expect_version, transitions, if_expired: None }
}

pub(crate) fn touch(
    task: &TaskSnapshot,
    progress: Option<Box<Progress>>,
    heartbeat_at: Option<Timestamp>,
) -> Entry {
    Entry::Touch(Touch { task_id: task.id.clone(), progress, heartbeat_at })
}

/// The stored task one version on, with these rows and nothing else changed.
pub(crate) fn appended(stored: TaskSnapshot, rows: &[Transition]) -> Entry {
    let (status, version) = (stored.status(), stored.status_version());
    save(stored.restored(status, version + 1), version, rows.to_vec())
}

/// `Now::Store` as a clock that stands at this many microseconds.
pub(crate) fn clock_at(micros: i64, now: Now) -> Now {
    match now {
        Now::Store => Now::At(Timestamp::from_micros(micros)),
        given => given,
    }
}

/// So late that every lease has expired.
pub(crate) const FAR: i64 = 253_402_300_000_000_000;

pub(crate) fn broken(message: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "sabotage", message)
}

impl TaskStore for Store {
    fn write(&self, entries: &[Entry]) -> Answer<Vec<Refusable>> {
        let fault = self.open("write")?;
        self.notes.entries().extend_from_slice(entries);
        (fault.write)(self, entries)
    }

    fn get(&self, id: &TaskId) -> Answer<Option<TaskSnapshot>> {
        (self.open("get")?.get)(self, id)
    }

    fn query(&self, query: &TaskQuery) -> Answer<TaskPage> {
        (self.open("query")?.query)(self, query)
    }

    fn count(&self, filter: &TaskFilter) -> Answer<Vec<Count>> {
        (self.open("count")?.count)(self, filter)
    }

    fn history(&self, id: &TaskId, after: u64, limit: usize) -> Answer<Vec<Transition>> {
        (self.open("history")?.history)(self, id, after, limit)
    }

    fn submit_command(&self, command: &NewCommand) -> Answer<()> {
        let fault = self.open("submit_command")?;
        self.notes.requests.lock().unwrap().push(command.clone());
        (fault.submit)(self, command)
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Answer<Vec<Command>> {
        let claimed = (self.open("claim_commands")?.claim)(self, holder, limit, lease, now)?;
        self.notes.claimed.lock().unwrap().extend_from_slice(&claimed);
        Ok(claimed)
    }

    fn complete_command(&self, id: &CommandId, receipt: &Receipt, now: Now) -> Answer<bool> {
        (self.open("complete_command")?.complete)(self, id, receipt, now)
    }

    fn release_command(&self, id: &CommandId) -> Answer<bool> {
        (self.open("release_command")?.release)(self, id)
    }

    fn commands(&self, task: &TaskId) -> Answer<Vec<Command>> {
        (self.open("commands")?.commands)(self, task)
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Answer<Beat> {
        let beat = (self.open("beat")?.beat)(self, node, ttl, now)?;
        self.notes.leases.lock().unwrap().push((node.incarnation.clone(), beat.lease_until));
        Ok(beat)
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Answer<()> {
        (self.open("retire")?.retire)(self, incarnation, now)
    }

    fn nodes(&self, now: Now) -> Answer<Vec<NodeRow>> {
        (self.open("nodes")?.nodes)(self, now)
    }

    fn pin(&self, fact: &str, value: &str) -> Answer<String> {
        (self.open("pin")?.pin)(self, fact, value)
    }

    fn pinned(&self, fact: &str) -> Answer<Option<String>> {
        (self.open("pinned")?.pinned)(self, fact)
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Answer<Pruned> {
        (self.open("prune")?.prune)(self, request, now)
    }

    fn close(&self) -> Answer<()> {
        (self.fault.close)(self)
    }
}
