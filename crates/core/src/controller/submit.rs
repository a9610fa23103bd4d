//! Submissions: what a caller may say about a task, and why one may be refused (spec 8).

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::controller::builder::ConfigurationError;
use crate::executor::{Target, UnsupportedTarget};
use crate::id::TaskId;
use crate::ownership::OwnershipError;
use crate::retry::RetryPolicy;
use crate::scheduler::{Policy, Siblings};
use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::store::StoreError;
use crate::task::{TaskDefinition, Upstream};
use crate::text::{InvalidText, Text, check_text};
use crate::timeout::Timeout;
use crate::value::{IntoValue, InvalidValue, Value};

/// Shared by all tasks without upstream.
static NO_UPSTREAM: LazyLock<Upstream> = LazyLock::new(Upstream::default);

/// What to run and how; what is left out comes from the definition.
#[derive(Clone, Debug)]
pub struct Submit {
    pub(super) name: Text,
    pub(super) args: Result<Value, InvalidValue>,
    pub(super) id: Option<TaskId>,
    pub(super) label: Option<Text>,
    pub(super) bucket_key: Option<Text>,
    pub(super) tags: Vec<Text>,
    pub(super) priority: Option<i32>,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) timeout: Option<Timeout>,
    pub(super) grace: Option<Duration>,
    pub(super) upstream: Upstream,
    pub(super) blocked: bool,
    pub(super) waits_for: Arc<[TaskId]>,
    pub(super) only_new: bool,
    pub(super) siblings: Option<Siblings>,
}

impl Submit {
    /// The definition of this name, without arguments.
    #[must_use]
    pub fn new(name: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            args: Ok(Value::Null),
            id: None,
            label: None,
            bucket_key: None,
            tags: Vec::new(),
            priority: None,
            retry: None,
            timeout: None,
            grace: None,
            upstream: Arc::clone(&NO_UPSTREAM),
            blocked: false,
            waits_for: Arc::default(),
            only_new: false,
            siblings: None,
        }
    }

    /// With these arguments. Values that JSON cannot express are refused at submission.
    #[must_use]
    pub fn args(mut self, args: impl IntoValue) -> Self {
        self.args = args.into_value();
        self
    }

    /// With this id instead of a generated one.
    #[must_use]
    pub fn id(mut self, id: TaskId) -> Self {
        self.id = Some(id);
        self
    }

    /// With a name for people.
    #[must_use]
    pub fn label(mut self, label: impl Into<Text>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// In the bucket of this key.
    #[must_use]
    pub fn bucket_key(mut self, key: impl Into<Text>) -> Self {
        self.bucket_key = Some(key.into());
        self
    }

    /// With one more tag, besides the definition's.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<Text>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// With this priority; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// With this retry policy.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// With these time-outs.
    #[must_use]
    pub fn timeout(mut self, timeout: Timeout) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With this much time for a stop.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Starts as `blocked`, until it is [released](crate::TaskRun::release),
    /// [skipped](crate::TaskRun::skip) or ended. These are the tasks that it waits for, for
    /// [`Controller::explain`](crate::Controller::explain); they may be submitted later. Never takes a
    /// stored task over: what that one waited for is not known any more.
    #[must_use]
    pub fn blocked(mut self, waits_for: impl IntoIterator<Item = TaskId>) -> Self {
        self.blocked = true;
        self.waits_for = waits_for.into_iter().collect();
        self.only_new()
    }

    /// Never takes a stored task over: an id that exists is an error in any case.
    #[must_use]
    pub fn only_new(mut self) -> Self {
        self.only_new = true;
        self
    }

    /// Tied to others: once one of them has failed, it is not started any more.
    #[must_use]
    pub fn siblings(mut self, siblings: Siblings) -> Self {
        self.siblings = Some(siblings);
        self
    }

    /// The policy that it is held to; the definition's own, shared, unless it changes something.
    pub(super) fn policy(
        &self,
        definition: &TaskDefinition,
        grace: Duration,
        hard_stop: bool,
    ) -> Policy {
        let defaults = &definition.defaults;
        Policy {
            retry: self.retry.clone().unwrap_or_else(|| defaults.retry.clone()),
            timeout: self.timeout.unwrap_or(defaults.timeout),
            grace: self.grace.or(defaults.grace).unwrap_or(grace),
            hard_stop,
        }
    }

    pub(super) fn keeps_defaults(&self) -> bool {
        self.retry.is_none() && self.timeout.is_none() && self.grace.is_none()
    }

    /// Checks the texts.
    pub(super) fn check(&self) -> Result<(), InvalidText> {
        self.label.as_deref().map_or(Ok(()), |label| check_text("label", label))?;
        self.bucket_key.as_deref().map_or(Ok(()), |key| check_text("bucket key", key))?;
        self.tags.iter().try_for_each(|tag| check_text("tag", tag))
    }

    /// The definition's tags and its own, sorted, each once.
    pub(super) fn all_tags(&self, definition: &TaskDefinition) -> Arc<[Text]> {
        let defaults = &definition.defaults.tags;
        if defaults.is_empty() && self.tags.is_empty() {
            return Arc::default();
        }
        let mut tags: Vec<Text> = defaults.iter().chain(&self.tags).cloned().collect();
        tags.sort_unstable();
        tags.dedup();
        tags.into()
    }
}

/// What the controller keeps with each task.
pub(super) struct Work {
    pub(super) target: Target,
    /// Or why there are none.
    pub(super) args: Result<Value, Text>,
    pub(super) upstream: Upstream,
    /// The tasks upstream of a blocked one.
    pub(super) waits_for: Arc<[TaskId]>,
}

/// Why a submission was not taken in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The controller takes nothing in any more.
    Closed,
    /// No definition has this name.
    UnknownTask {
        /// The name.
        name: Text,
        /// What there is.
        known: Vec<Text>,
    },
    /// The executor cannot carry it.
    Unsupported(UnsupportedTarget),
    /// A text breaks the rules of its field.
    Text(InvalidText),
    /// The arguments cannot be expressed in JSON.
    Args(InvalidValue),
    /// The bucket is not this node's.
    Ownership(OwnershipError),
    /// The id is taken.
    Exists {
        /// The id.
        id: TaskId,
        /// Why it cannot be taken over.
        why: NotAdoptable,
    },
    /// Another node recorded another bucket count first.
    NumBuckets(Arc<ConfigurationError>),
    /// The store could not be asked whether the task can be taken over.
    Store(Arc<StoreError>),
}

/// Why a stored task cannot be taken over by a submission of its id (spec 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdoptable {
    /// This controller holds it.
    Ours,
    /// It has ended.
    Ended(Status),
    /// Its holder lives.
    HolderLives,
    /// Work was in flight when its holder went: what became of it is for reconcile to settle.
    InFlight(Status),
    /// It is a task of another definition.
    OtherName(Text),
    /// It is in another bucket.
    OtherBucket(Option<u32>),
    /// Somebody else was faster.
    Raced,
    /// The submission is for a new task only.
    OnlyNew,
}

impl fmt::Display for NotAdoptable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("this controller holds it"),
            Self::Ended(status) => write!(f, "it ended as {status}"),
            Self::HolderLives => f.write_str("its holder lives"),
            Self::InFlight(status) => {
                write!(f, "it was {status} when its holder went, which `reconcile` settles")
            }
            Self::OtherName(name) => write!(f, "it is a task {name:?}"),
            Self::OtherBucket(Some(bucket)) => write!(f, "it is in bucket {bucket}"),
            Self::OtherBucket(None) => f.write_str("it has no bucket"),
            Self::Raced => f.write_str("somebody else took it over at the same time"),
            Self::OnlyNew => f.write_str("only a new task was asked for"),
        }
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the controller is closed and takes no more tasks"),
            Self::UnknownTask { name, known } => {
                write!(f, "there is no task named {name:?}; registered are ")?;
                for (i, known) in known.iter().take(20).enumerate() {
                    write!(f, "{}{known:?}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(if known.is_empty() { "none" } else { "" })
            }
            Self::Unsupported(error) => error.fmt(f),
            Self::Text(error) => error.fmt(f),
            Self::Args(error) => write!(f, "the arguments cannot be expressed in JSON: {error}"),
            Self::Ownership(error) => error.fmt(f),
            Self::Exists { id, why } => {
                write!(
                    f,
                    "task id {id:?} exists already and cannot be taken over: {why}; use another id"
                )
            }
            Self::NumBuckets(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SubmitError {}

impl From<InvalidText> for SubmitError {
    fn from(error: InvalidText) -> Self {
        Self::Text(error)
    }
}

impl From<OwnershipError> for SubmitError {
    fn from(error: OwnershipError) -> Self {
        Self::Ownership(error)
    }
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// Can this stored task be taken over by a submission of this name and bucket, its holder being gone?
pub(super) fn adoptable(
    stored: &TaskSnapshot,
    name: &str,
    bucket: Option<u32>,
    holder_lives: bool,
) -> Result<(), NotAdoptable> {
    let status = stored.status();
    if status.is_terminal() {
        return Err(NotAdoptable::Ended(status));
    }
    if &*stored.name != name {
        return Err(NotAdoptable::OtherName(stored.name.clone()));
    }
    if stored.bucket != bucket {
        return Err(NotAdoptable::OtherBucket(stored.bucket));
    }
    if holder_lives {
        return Err(NotAdoptable::HolderLives);
    }
    if status.is_adoptable() { Ok(()) } else { Err(NotAdoptable::InFlight(status)) }
}
