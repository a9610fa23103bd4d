//! The executor port: who carries a body (spec 7).
//!
//! An executor knows no status and no store. It is given one attempt at a time, reports what happens to
//! it, and obeys signals. The scheduler draws the conclusions.

mod inline;
mod thread;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use inline::InlineExecutor;
pub use thread::ThreadExecutor;

use crate::artifacts::AttemptFiles;
use crate::failure::Failure;
use crate::id::TaskId;
use crate::snapshot::Progress;
use crate::task::{Body, Upstream};
use crate::text::Text;
use crate::value::Value;

/// What an attempt runs.
#[derive(Clone)]
pub enum Target {
    /// A Rust function of this process.
    Function(Body),
    /// Something that only its own executor understands, such as an external command.
    External(Arc<dyn Any + Send + Sync>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function(_) => "Function",
            Self::External(_) => "External",
        })
    }
}

/// What an executor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Can end a body that does not listen. Without it, such a body becomes `lost` at the end of its grace.
    pub hard_stop: bool,
    /// A crash of the body cannot harm this process.
    pub isolation: bool,
}

/// A target that an executor cannot carry: told at submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedTarget(pub String);

impl fmt::Display for UnsupportedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnsupportedTarget {}

/// One attempt to carry.
pub struct Launch {
    /// The task.
    pub task_id: TaskId,
    /// Name of its definition.
    pub name: Text,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// What to run.
    pub target: Target,
    /// Its arguments.
    pub args: Value,
    /// Results of its succeeded upstream nodes.
    pub upstream: Upstream,
    /// Where its log and its artifacts go; `None` when nothing is kept.
    pub files: Option<AttemptFiles>,
    /// Where to report.
    pub sink: Arc<dyn AttemptSink>,
}

/// Carries attempts.
pub trait Executor: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Can it carry this target?
    ///
    /// # Errors
    /// [`UnsupportedTarget`] says why not.
    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget>;

    /// A hint: launches are about to come, as soon as their start is stored.
    fn expect(&self) {}

    /// Starts an attempt and returns the handle that signals go to.
    ///
    /// Must not block and must not fail: whatever happens is reported through the launch's sink, in this
    /// order: `Launched` (or `LaunchFailed`, which ends the attempt), any number of others, and exactly
    /// one `Ended`. An attempt that was told to stop before it was launched, or that
    /// [may not begin](AttemptSink::may_begin), may report `Ended` alone.
    fn launch(&self, launch: Launch) -> Arc<dyn Carrier>;

    /// [`launch`](Self::launch) for several at once, for executors that can do that faster. One carrier
    /// for each launch, in order.
    fn launch_all(&self, launches: Vec<Launch>) -> Vec<Arc<dyn Carrier>> {
        launches.into_iter().map(|launch| self.launch(launch)).collect()
    }
}

/// A launched attempt.
pub trait Carrier: Send + Sync {
    /// Passes a signal on. Never blocks; a signal that comes too early is kept, one that comes too late
    /// is dropped.
    fn signal(&self, signal: Signal);
}

/// What a carrier can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// End as soon as you can; after `grace` comes [`Signal::Kill`].
    Stop {
        /// Why, for the body.
        reason: Text,
        /// How long it has.
        grace: Duration,
    },
    /// End it now. An executor without hard stop gives the carrier up and replaces it.
    Kill,
    /// Suspend at the next chance and report `Paused` with this number.
    Pause {
        /// Tells this pause from earlier ones.
        epoch: u64,
    },
    /// Go on.
    Resume,
}

/// Takes an attempt's reports.
pub trait AttemptSink: Send + Sync {
    /// Something happened. Cheap; may be called from any thread.
    fn report(&self, report: Report);

    /// May the attempt begin? `false` when its task was taken over since it was launched, or its controller has
    /// closed: then nothing of it may run, and it ends as `Interrupted`.
    ///
    /// To be asked as late as can be, with nothing in between: by [`run_body`](crate::run_body) for what it
    /// runs, and by an executor directly before it starts a process. A yes is good for
    /// [`MAY_BEGIN_GOOD_FOR`](crate::MAY_BEGIN_GOOD_FOR): an executor that has started a process later asks again.
    ///
    /// Cheap, unless this program stood still for longer than its lease: then it may wait for the store, which
    /// an executor that runs the body within `launch` would do in place of those that ask it.
    fn may_begin(&self) -> bool;
}

/// What can happen to an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The body runs.
    Launched,
    /// The carrier could not be started; nothing ran.
    LaunchFailed(Failure),
    /// Suspended, as asked with this epoch.
    Paused {
        /// The number of the pause.
        epoch: u64,
    },
    /// A sign of life.
    Activity,
    /// How far it has come. Not a sign of life.
    Progress(Progress),
    /// The carrier is gone, and nothing of it is left but what the end tells.
    Ended(AttemptEnd),
}

/// How an attempt ended, as far as its executor knows.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    /// It returned this.
    Completed(Value),
    /// It failed before it was told to stop.
    Failed(Failure),
    /// It ended after it was told to stop (or killed), in whatever way, and nothing of it is left.
    Interrupted {
        /// Exit code or error, where there is one.
        message: Option<Text>,
    },
    /// It was told to end, and something of it that cannot be ended goes on.
    Unkillable {
        /// Which process goes on, and why it could not be ended.
        message: Text,
    },
    /// It is gone and nobody can say how it ended.
    Vanished {
        /// What is known.
        message: Text,
    },
}
