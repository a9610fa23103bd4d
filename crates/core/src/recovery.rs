//! After a crash: what is lost, what can be taken over (spec 12). Never runs anything.

use std::fmt;

use crate::control::close_commands;
use crate::failure::{Failure, FailureKind};
use crate::id::TaskId;
use crate::machine;
use crate::ownership::Ownership;
use crate::snapshot::TaskSnapshot;
use crate::status::{Status, StatusSet};
use crate::store::{Entry, EntryError, Now, StoreError, TaskFilter, TaskQuery, TaskStore};
use crate::text::clean;
use crate::time::Clock;
use crate::transition::Trigger;

/// What was found about one task whose holder is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// What was done.
    pub outcome: ReconcileOutcome,
    /// The task.
    pub task_id: TaskId,
    /// Its status before.
    pub was: Status,
    /// In words.
    pub detail: String,
}

/// What reconcile did (or, in a dry run, would do).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReconcileOutcome {
    /// Work was in flight: it is `lost` now.
    MarkedLost,
    /// Nothing was running: a new submission of the same id may take it over.
    Adoptable,
    /// Somebody else wrote it, or its holder came back: left alone.
    Conflict,
}

impl ReconcileOutcome {
    /// The word that JSON and tables use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MarkedLost => "marked-lost",
            Self::Adoptable => "adoptable",
            Self::Conflict => "conflict",
        }
    }
}

impl fmt::Display for ReconcileOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Looks at the unfinished tasks in the owned buckets whose holder's lease has expired, by the store's
/// clock: work in flight becomes `lost`, the rest is reported as adoptable, unchanged. `clock` says when each
/// was found to be lost.
///
/// # Errors
/// [`StoreError`] when the store cannot be read or written; what was done until then stays done.
pub fn reconcile(
    store: &dyn TaskStore,
    ownership: &Ownership,
    dry_run: bool,
    reason: Option<&str>,
    clock: &dyn Clock,
) -> Result<Vec<Reconciled>, StoreError> {
    let filter = TaskFilter {
        statuses: Some(StatusSet::unfinished()),
        buckets: ownership.declared().filter(|_| !ownership.owns_all_buckets()).cloned(),
        lease_expired: Some((true, Now::Store)),
        ..TaskFilter::default()
    };
    let mut query = TaskQuery { filter, after: None, limit: 500 };
    let mut found = Vec::new();
    loop {
        let page = store.query(&query)?;
        for task in page.tasks {
            found.push(settle(store, task, dry_run, reason, clock)?);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

fn settle(
    store: &dyn TaskStore,
    mut task: TaskSnapshot,
    dry_run: bool,
    reason: Option<&str>,
    clock: &dyn Clock,
) -> Result<Reconciled, StoreError> {
    let (task_id, was) = (task.id.clone(), task.status());
    let holder = task.supervisor.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
    let found = |outcome, detail| Reconciled { outcome, task_id: task_id.clone(), was, detail };
    if was.is_adoptable() {
        let detail = format!("held by {holder}, whose lease has expired; submit it again to go on");
        return Ok(found(ReconcileOutcome::Adoptable, detail));
    }
    let detail = format!("its holder {holder} of {} is gone; how it ended is unknown", task.owner);
    let expect_version = task.status_version();
    task.failure = Some(Box::new(Failure::new(FailureKind::Lost, &detail)));
    let at = clock.wall();
    let applied =
        machine::apply(&mut task, Status::Lost, Trigger::LeaseExpired, at, reason.map(clean));
    let transition = match applied {
        Ok(transition) => transition,
        Err(illegal) => return Ok(found(ReconcileOutcome::Conflict, illegal.to_string())),
    };
    if dry_run {
        return Ok(found(ReconcileOutcome::MarkedLost, detail));
    }
    let entry = Entry::Save {
        snapshot: task.into(),
        expect_version,
        transitions: vec![transition],
        if_expired: Some(Now::Store),
    };
    match store.write(&[entry])?.pop() {
        Some(Ok(())) => {
            close_commands(store, &task_id, Status::Lost)?;
            Ok(found(ReconcileOutcome::MarkedLost, detail))
        }
        Some(Err(error)) => Ok(found(ReconcileOutcome::Conflict, error.to_string())),
        None => Ok(found(ReconcileOutcome::Conflict, EntryError::NotFound.to_string())),
    }
}
