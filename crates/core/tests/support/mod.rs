//! What the controller's tests share: bodies that wait to be told, and a store that fails on demand.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use chongming_core::store::{
    Beat, Command, Count, Entry, EntryError, NewCommand, Node, NodeRow, Now, PruneRequest, Pruned,
    Receipt, StoreError, StoreErrorKind, TaskFilter, TaskPage, TaskQuery, TaskStore,
};
use chongming_core::{
    CommandId, Controller, InMemoryStore, IncarnationId, TaskContext, TaskDefinition, TaskError,
    TaskId, TaskSnapshot, Transition,
};

/// Longer than anything here takes; only a hanging test meets it.
pub const LIMIT: Duration = Duration::from_secs(60);

pub fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

/// A task that says that it runs, and then goes on until it is told to stop.
pub fn looping() -> (TaskDefinition, Receiver<u32>) {
    let (say, runs) = channel();
    let say = Mutex::new(say);
    let body = move |ctx: &TaskContext, ()| -> Result<(), TaskError> {
        say.lock().unwrap().send(ctx.attempt()).unwrap();
        loop {
            ctx.sleep(Duration::from_millis(1))?;
        }
    };
    (TaskDefinition::new("loop", body), runs)
}

/// The trail of a task: `status trigger` for each row.
pub fn words(controller: &Controller, id: &TaskId) -> Vec<String> {
    let rows = controller.history(id).unwrap();
    rows.iter().map(|row| format!("{} {}", row.to, row.trigger)).collect()
}

/// A store whose writes fail, hang, or are carried out without an answer, on demand.
pub struct Faulty {
    inner: InMemoryStore,
    pub fails: AtomicBool,
    /// The next write is carried out, but its caller is told that it failed.
    pub loses_answer: AtomicBool,
    pub hang: Mutex<Option<Arc<Barrier>>>,
    /// The next write meets this before it is done, and once more.
    pub holds: Mutex<Option<Arc<Barrier>>>,
    /// The next write meets this once it is done, and once more before it answers.
    pub hang_done: Mutex<Option<Arc<Barrier>>>,
    pub query_fails: AtomicBool,
    /// The next beat is carried out, but its caller is told that it failed.
    pub beat_loses_answer: AtomicBool,
    /// The next beat meets this, and once more before it answers.
    pub hang_beat: Mutex<Option<Arc<Barrier>>>,
}

impl Faulty {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: InMemoryStore::new(),
            fails: AtomicBool::new(false),
            loses_answer: AtomicBool::new(false),
            hang: Mutex::new(None),
            holds: Mutex::new(None),
            hang_done: Mutex::new(None),
            query_fails: AtomicBool::new(false),
            beat_loses_answer: AtomicBool::new(false),
            hang_beat: Mutex::new(None),
        })
    }
}

impl TaskStore for Faulty {
    fn write(&self, entries: &[Entry]) -> Result<Vec<Result<(), EntryError>>, StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::new(StoreErrorKind::Full, "write", "the disk is full"));
        }
        let hang = self.hang.lock().unwrap().take();
        if let Some(barrier) = hang {
            barrier.wait();
        }
        let held = self.holds.lock().unwrap().take();
        if let Some(barrier) = held {
            barrier.wait();
            barrier.wait();
        }
        let answer = self.inner.write(entries);
        let hang = self.hang_done.lock().unwrap().take();
        if let Some(barrier) = hang {
            barrier.wait();
            barrier.wait();
        }
        if self.loses_answer.swap(false, Ordering::SeqCst) {
            let message = "the connection broke before the answer came";
            return Err(StoreError::new(StoreErrorKind::Unavailable, "write", message));
        }
        answer
    }

    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.inner.get(id)
    }

    fn query(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        if self.query_fails.load(Ordering::SeqCst) {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "query",
                "the server is busy",
            ));
        }
        self.inner.query(query)
    }

    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError> {
        self.inner.count(filter)
    }

    fn history(
        &self,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>, StoreError> {
        self.inner.history(id, after, limit)
    }

    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError> {
        self.inner.submit_command(command)
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError> {
        self.inner.claim_commands(holder, limit, lease, now)
    }

    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.inner.complete_command(id, receipt, now)
    }

    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError> {
        self.inner.release_command(id)
    }

    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError> {
        self.inner.commands(task)
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError> {
        let hang = self.hang_beat.lock().unwrap().take();
        if let Some(barrier) = hang {
            barrier.wait();
            barrier.wait();
        }
        let answer = self.inner.beat(node, ttl, now);
        if self.beat_loses_answer.swap(false, Ordering::SeqCst) {
            let message = "the connection broke before the answer came";
            return Err(StoreError::new(StoreErrorKind::Unavailable, "beat", message));
        }
        answer
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError> {
        self.inner.retire(incarnation, now)
    }

    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError> {
        self.inner.nodes(now)
    }

    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError> {
        self.inner.pin(fact, value)
    }

    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError> {
        self.inner.pinned(fact)
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError> {
        self.inner.prune(request, now)
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}
