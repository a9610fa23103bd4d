//! The store port: what every store must do, clause by clause (spec 9).
//!
//! The numbered clauses are what the cases of `chongming-contract` quote. A store knows nothing of
//! controllers, policies or schedulers; it keeps rows, and it keeps its promises.

mod command;
mod error;
mod node;
mod query;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub use command::{Command, CommandKind, NewCommand, Receipt, ReceiptKind, UnknownWord};
pub use error::{EntryError, StoreError, StoreErrorKind};
pub use node::{Beat, Node, NodeRow};
pub use query::{Count, Cursor, TaskFilter, TaskPage, TaskQuery};
pub use write::{Entry, Now, PruneRequest, Pruned, Touch};

use crate::id::{CommandId, IncarnationId, TaskId};
use crate::snapshot::TaskSnapshot;
use crate::transition::Transition;

/// Called by a store when commands may have come in for the incarnation that subscribed.
pub type Doorbell = Arc<dyn Fn() + Send + Sync>;

/// Keeps tasks, their trail, commands and nodes.
///
/// All methods may be called from many threads at once, and from many processes where the store is
/// shared. No method is given a default but [`subscribe`](Self::subscribe), so that a wrapper cannot
/// forget to forward one.
pub trait TaskStore: Send + Sync {
    /// Writes a batch of entries in one transaction.
    ///
    /// *Requires*: entries in the order in which one task's are to be applied.
    ///
    /// *Guarantees*
    /// 1. One result for each entry, in order; a refused entry changes nothing and affects no other.
    /// 2. Everything accepted is durable on return, at the configured level.
    /// 3. A state and its audit rows land together or not at all.
    /// 4. `Save` compares the stored version with `expect_version` and writes, atomically: of several
    ///    writers with one expectation exactly one wins. Any larger version is accepted, not only + 1.
    ///    The first of these that holds is the refusal: `NotFound`, `Conflict`, `NotNewer`, `LeaseHeld`.
    /// 5. `Save` and `Create` write neither lease nor progress nor heartbeat. `Save` leaves what the
    ///    submission fixed: name, bucket, bucket key and `created_at`.
    /// 6. An audit row whose (task, version) exists is skipped.
    /// 7. `Touch` moves neither version nor `updated_at`, and leaves what it does not name.
    /// 8. `if_expired` is judged with the version: it refuses while the stored supervisor's lease lasts,
    ///    and takes a task without supervisor or without node row as expired.
    /// 9. An entry that fails [`Entry::check`] makes the whole call `Invalid` before anything is written.
    ///
    /// *On failure* of the whole call nothing or everything may have been written; the caller finds out
    /// by reading.
    ///
    /// # Errors
    /// [`StoreError`] when the batch could not be written.
    fn write(&self, entries: &[Entry]) -> Result<Vec<Result<(), EntryError>>, StoreError>;

    /// One task, its lease read through its supervisor's node row.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError>;

    /// One page of tasks.
    ///
    /// *Guarantees*
    /// 1. Newest created first, in an order that does not change while rows do: following `next` visits
    ///    every task that matches throughout exactly once.
    /// 2. Every condition of the filter is judged by the store, not by the caller.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read; `Invalid` for a cursor that it did not make.
    fn query(&self, query: &TaskQuery) -> Result<TaskPage, StoreError>;

    /// How many tasks match, by bucket and status, in no particular order.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError>;

    /// Audit rows of one task with a version above `after`, ascending, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn history(&self, id: &TaskId, after: u64, limit: usize)
    -> Result<Vec<Transition>, StoreError>;

    /// Hands in a command. Handing in the same id again changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError>;

    /// Claims open commands for `holder`, oldest first.
    ///
    /// *Guarantees*
    /// 1. Only commands that name this holder and have no receipt.
    /// 2. Choosing and leasing is atomic: no command goes to two claimers while a claim lasts.
    /// 3. A claim that ran out (by `now`) can be claimed again.
    ///
    /// # Errors
    /// [`StoreError`] when nothing could be claimed.
    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError>;

    /// Records what happened; `false` when it had a receipt already (which stays) or is unknown.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError>;

    /// Gives a claim back: the command can be claimed at once. `false` when it is completed or unknown.
    /// Never completes it.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError>;

    /// All commands of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError>;

    /// Writes the node's row and renews its lease to `ttl` from `now`: one write, however many tasks it
    /// holds. Says whether the lease had expired; a first beat has not lapsed.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError>;

    /// Ends the lease of an incarnation at once; its row stays.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError>;

    /// All node rows, latest start first; `alive` as judged by `now`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError>;

    /// Records a store-wide fact, or returns the one that is recorded: the first writer wins, atomically.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError>;

    /// A store-wide fact, without recording one.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError>;

    /// Deletes ended tasks with their trail and commands, and node rows dead since before the same time
    /// that no unfinished task names, except each owner's latest. Never an unfinished task.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be done.
    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError>;

    /// Closes the store: every later call is a `Closed` error, a second close does nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be closed in an orderly way; it is closed all the same.
    fn close(&self) -> Result<(), StoreError>;

    /// Asks to be rung when a command for `holder` may have come in: a hint that saves polling time.
    /// A store without such means does nothing; polling stays the source of truth.
    fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        let _ = (holder, bell);
    }
}

/// Name of the store-wide fact that holds the bucket count (spec 3).
pub const FACT_NUM_BUCKETS: &str = "num_buckets";
