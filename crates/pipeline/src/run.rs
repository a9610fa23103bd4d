//! [`PipelineRun`]: a run in the hands of its starter.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use chongming_core::{TaskRun, Text, WaitTimedOut};

use crate::outcome::PipelineOutcome;
use crate::runner::Happened;

/// A run of a pipeline. Dropping it changes nothing about the run, which keeps its controller until it has
/// ended.
#[derive(Clone)]
pub struct PipelineRun {
    pub(crate) shared: Arc<Shared>,
    pub(crate) happened: Sender<Happened>,
}

/// What the run's thread and its starter share.
pub(crate) struct Shared {
    pub(crate) run_id: Text,
    pub(crate) nodes: Vec<(Text, TaskRun)>,
    fate: Mutex<Fate>,
    ended: Condvar,
}

#[derive(Default)]
struct Fate {
    outcome: Option<Arc<PipelineOutcome>>,
    watchers: Vec<Box<dyn FnOnce() + Send>>,
}

impl PipelineRun {
    /// The run's id, with which the ids of its tasks begin.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.run_id
    }

    /// Its nodes and their tasks, in the order in which they were added.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&Text, &TaskRun)> {
        self.shared.nodes.iter().map(|(node, run)| (node, run))
    }

    /// The task of this node.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&TaskRun> {
        self.nodes().find(|(node, _)| &***node == id).map(|(_, run)| run)
    }

    /// Waits until every node has ended; without a time, as long as it takes.
    ///
    /// # Errors
    /// [`WaitTimedOut`]: the time ran out; the run is not affected.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Arc<PipelineOutcome>, WaitTimedOut> {
        let fate = self.shared.fate.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |fate: &mut Fate| fate.outcome.is_none();
        let ended = &self.shared.ended;
        let fate = match timeout {
            None => ended.wait_while(fate, is_open).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let waited = ended.wait_timeout_while(fate, timeout, is_open);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        fate.outcome.clone().ok_or(WaitTimedOut)
    }

    /// How it ended; `None` while it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Arc<PipelineOutcome>> {
        self.wait(Some(Duration::ZERO)).ok()
    }

    /// A person cancels the run: every node that has not ended is (`user:cancel`), those that join by
    /// all_settled included. [`wait`](Self::wait) tells when they are.
    pub fn cancel(&self, reason: Option<&str>) {
        // A run that has ended has nothing to cancel.
        let _ = self.happened.send(Happened::Cancelled(reason.map(Into::into)));
    }

    /// Sends this event once the run has ended, at once when it has.
    pub fn notify<T: Send + 'static>(&self, to: &Sender<T>, event: T) {
        let to = to.clone();
        self.shared.watch(Box::new(move || drop(to.send(event))));
    }
}

impl Shared {
    pub(crate) fn new(run_id: Text, nodes: Vec<(Text, TaskRun)>) -> Self {
        Self { run_id, nodes, fate: Mutex::default(), ended: Condvar::new() }
    }

    pub(crate) fn end(&self, outcome: PipelineOutcome) {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        fate.outcome = Some(Arc::new(outcome));
        fate.watchers.drain(..).for_each(|watcher| watcher());
        self.ended.notify_all();
    }

    fn watch(&self, watcher: Box<dyn FnOnce() + Send>) {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        if fate.outcome.is_some() {
            watcher();
        } else {
            fate.watchers.push(watcher);
        }
    }
}
