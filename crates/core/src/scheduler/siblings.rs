//! Tasks of which none starts any more once one of them has failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::status::Status;

/// Ties tasks of one controller together: once one of them has [failed](Status::is_failure), none that waits is given a
/// slot.
///
/// They stay `queued` until whoever tied them together ends them: he hears of the failure only after the slot that it
/// frees has been given to the next.
///
/// ```
/// # use chongming_core::{Controller, Siblings, Status, Submit, TaskContext, TaskDefinition, TaskError};
/// let fail = |_: &TaskContext, ()| Err::<(), _>(TaskError::permanent("no"));
/// let controller = Controller::builder()
///     .max_parallel(1)
///     .register(TaskDefinition::new("fail", fail))
///     .build()?;
/// let siblings = Siblings::new();
/// let submit = || controller.submit(Submit::new("fail").siblings(siblings.clone()));
/// let (first, second) = (submit()?, submit()?);
/// assert_eq!(first.wait(None)?.status(), Status::Failed);
/// second.cancel(Some("the first one failed"));
/// let second = second.wait(None)?;
/// assert_eq!((second.status(), second.snapshot.attempt), (Status::Cancelled, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Siblings(Arc<Membership>);

#[derive(Debug, Default)]
struct Membership {
    has_failed: Arc<AtomicBool>,
    is_exempt: bool,
}

impl Siblings {
    /// A new tie, without tasks yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same tie for a task that starts whatever becomes of the others. Its own failure counts.
    #[must_use]
    pub fn exempt(&self) -> Self {
        Self(Arc::new(Membership { has_failed: Arc::clone(&self.0.has_failed), is_exempt: true }))
    }

    /// One of them has ended.
    pub(super) fn ended(&self, status: Status) {
        if status.is_failure() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
    }

    /// May this one still start?
    pub(super) fn may_start(&self) -> bool {
        self.0.is_exempt || !self.0.has_failed.load(Ordering::Relaxed)
    }
}
