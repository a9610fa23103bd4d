//! A definition: name, target and defaults (spec 5).

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::executor::Target;
use crate::retry::RetryPolicy;
use crate::task::body::{BlockOn, block_on, function, future};
use crate::task::context::TaskContext;
use crate::task::error::TaskError;
use crate::text::Text;
use crate::timeout::Timeout;
use crate::value::{FromValue, IntoValue, Value};

/// What can be submitted by name.
///
/// ```
/// # use chongming_core::{RetryPolicy, TaskContext, TaskDefinition, TaskError};
/// let count = TaskDefinition::new("count", |ctx: &TaskContext, up_to: u32| {
///     for i in 0..up_to {
///         ctx.checkpoint()?; // all it takes to be stoppable and pausable
///         ctx.progress(f64::from(i)).total(f64::from(up_to)).report();
///     }
///     Ok::<u32, TaskError>(up_to)
/// })
/// .tag("demo")
/// .retry(RetryPolicy::attempts(3));
/// assert_eq!(count.name(), "count");
/// ```
#[derive(Clone, Debug)]
pub struct TaskDefinition {
    pub(crate) name: Text,
    pub(crate) target: Target,
    pub(crate) params: Vec<Param>,
    pub(crate) defaults: Defaults,
}

/// A named argument, for command lines (spec 15): it becomes an entry of the map that the body gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Text,
    /// What it is for.
    pub help: Option<Text>,
    /// What it is when it is not given; `None` = it must be given.
    pub default: Option<Value>,
}

impl Param {
    /// One that must be given.
    pub fn required(name: impl Into<Text>) -> Self {
        Self { name: name.into(), help: None, default: None }
    }

    /// One that may be left out.
    pub fn optional(name: impl Into<Text>, default: impl Into<Value>) -> Self {
        Self { name: name.into(), help: None, default: Some(default.into()) }
    }

    /// With a help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<Text>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// What a submission of this definition gets unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// Tags.
    pub tags: Vec<Text>,
    /// Retry policy.
    pub retry: RetryPolicy,
    /// Time-outs.
    pub timeout: Timeout,
    /// Priority; higher goes first.
    pub priority: i32,
    /// Time that a stop may take; `None` = the controller's.
    pub grace: Option<Duration>,
}

impl TaskDefinition {
    /// A function or closure of `&TaskContext` and its arguments.
    pub fn new<A, T, F>(name: impl Into<Text>, body: F) -> Self
    where
        A: FromValue,
        T: IntoValue,
        F: Fn(&TaskContext, A) -> Result<T, TaskError> + Send + Sync + 'static,
    {
        Self::with_target(name, Target::Function(function(body)))
    }

    /// An async function; the thread that runs the task drives it to its end.
    pub fn new_async<A, T, F, Fut>(name: impl Into<Text>, body: F) -> Self
    where
        A: FromValue,
        T: IntoValue,
        F: Fn(TaskContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, TaskError>> + Send + 'static,
    {
        Self::new_async_on(name, Arc::new(block_on), body)
    }

    /// An async function that is driven by `block_on`, such as a runtime's own.
    pub fn new_async_on<A, T, F, Fut>(name: impl Into<Text>, block_on: BlockOn, body: F) -> Self
    where
        A: FromValue,
        T: IntoValue,
        F: Fn(TaskContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, TaskError>> + Send + 'static,
    {
        Self::with_target(name, Target::Function(future(body, block_on)))
    }

    /// Something that only its own executor understands, such as an external command.
    pub fn external(name: impl Into<Text>, target: Arc<dyn Any + Send + Sync>) -> Self {
        Self::with_target(name, Target::External(target))
    }

    fn with_target(name: impl Into<Text>, target: Target) -> Self {
        Self { name: name.into(), target, params: Vec::new(), defaults: Defaults::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it runs.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Its named arguments, in the order in which they were declared. A definition without any leaves it to
    /// its body which arguments it takes.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Its defaults.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// With one more named argument.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// With these defaults in place of all others.
    #[must_use]
    pub fn with_defaults(mut self, defaults: Defaults) -> Self {
        self.defaults = defaults;
        self
    }

    /// With one more tag.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<Text>) -> Self {
        self.defaults.tags.push(tag.into());
        self
    }

    /// With this retry policy.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.defaults.retry = retry;
        self
    }

    /// With these time-outs.
    #[must_use]
    pub fn timeout(mut self, timeout: Timeout) -> Self {
        self.defaults.timeout = timeout;
        self
    }

    /// With this priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.defaults.priority = priority;
        self
    }

    /// With this much time for a stop.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.defaults.grace = Some(grace);
        self
    }
}
