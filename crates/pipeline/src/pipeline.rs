//! A pipeline as its author describes it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chongming_core::{
    Controller, IntoValue, RetryPolicy, Submit, TaskId, Text, Timeout, Upstream, Value,
};

use crate::check::Checked;
use crate::join::{Aggregation, Join};
use crate::mistake::{InvalidPipeline, StartError};
use crate::run::PipelineRun;
use crate::runner;

/// Makes a node's arguments of the results of its succeeded upstream nodes, or says why it cannot.
pub(crate) type ArgsOf = Arc<dyn Fn(&BTreeMap<Text, Value>) -> Result<Value, Text> + Send + Sync>;

/// One node: a task, what it waits for, and what differs from the task's definition.
#[derive(Clone)]
pub struct Node {
    pub(crate) id: Text,
    pub(crate) submit: Submit,
    pub(crate) depends_on: Vec<Text>,
    pub(crate) join: Join,
    pub(crate) has_bucket_key: bool,
    pub(crate) has_priority: bool,
    pub(crate) args_of: Option<ArgsOf>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("submit", &self.submit)
            .field("depends_on", &self.depends_on)
            .field("join", &self.join)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// A node of this id, unique in its pipeline, that runs the task of this name.
    #[must_use]
    pub fn new(id: impl Into<Text>, task: impl Into<Text>) -> Self {
        Self {
            id: id.into(),
            submit: Submit::new(task),
            depends_on: Vec::new(),
            join: Join::default(),
            has_bucket_key: false,
            has_priority: false,
            args_of: None,
        }
    }

    /// With these arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoValue) -> Self {
        self.submit = self.submit.args(args);
        self
    }

    /// With arguments that are made when it is released, of the results of its succeeded upstream nodes; a
    /// node without upstream keeps those of [`args`](Self::args). An `Err` fails the node, for that reason.
    #[must_use]
    pub fn args_from(
        mut self,
        args: impl Fn(&BTreeMap<Text, Value>) -> Result<Value, Text> + Send + Sync + 'static,
    ) -> Self {
        self.args_of = Some(Arc::new(args));
        self
    }

    /// Waits for one more node.
    #[must_use]
    pub fn after(mut self, node: impl Into<Text>) -> Self {
        self.depends_on.push(node.into());
        self
    }

    /// Waits for these nodes, too.
    #[must_use]
    pub fn depends_on(mut self, nodes: impl IntoIterator<Item = impl Into<Text>>) -> Self {
        self.depends_on.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// When it may start.
    #[must_use]
    pub fn join(mut self, join: Join) -> Self {
        self.join = join;
        self
    }

    /// With this retry policy.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.submit = self.submit.retry(retry);
        self
    }

    /// With these time-outs; that for the start counts from its release.
    #[must_use]
    pub fn timeout(mut self, timeout: Timeout) -> Self {
        self.submit = self.submit.timeout(timeout);
        self
    }

    /// With this priority; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.submit = self.submit.priority(priority);
        self.has_priority = true;
        self
    }

    /// In the bucket of this key, instead of the pipeline's.
    #[must_use]
    pub fn bucket_key(mut self, key: impl Into<Text>) -> Self {
        self.submit = self.submit.bucket_key(key);
        self.has_bucket_key = true;
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Nodes that wait for one another.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) name: Text,
    pub(crate) nodes: Vec<Node>,
    pub(crate) aggregation: Aggregation,
    label: Option<Text>,
    bucket_key: Option<Text>,
    priority: Option<i32>,
    tags: Vec<Text>,
    grace: Option<Duration>,
}

impl Pipeline {
    /// A pipeline without nodes.
    #[must_use]
    pub fn new(name: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            nodes: Vec::new(),
            aggregation: Aggregation::default(),
            label: None,
            bucket_key: None,
            priority: None,
            tags: Vec::new(),
            grace: None,
        }
    }

    /// Adds a node, in any order.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.nodes.push(node);
        self
    }

    /// What a failed node means for the others.
    #[must_use]
    pub fn aggregation(mut self, aggregation: Aggregation) -> Self {
        self.aggregation = aggregation;
        self
    }

    /// What the labels of its tasks begin with, instead of its name.
    #[must_use]
    pub fn label(mut self, label: impl Into<Text>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The bucket key of nodes that have none of their own.
    #[must_use]
    pub fn bucket_key(mut self, key: impl Into<Text>) -> Self {
        self.bucket_key = Some(key.into());
        self
    }

    /// The priority of nodes that have none of their own.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// One more tag for every node.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<Text>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// How much time a stop of a node may take.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Checks the structure: everything that can be wrong whatever the controller.
    ///
    /// # Errors
    /// [`InvalidPipeline`] has all mistakes.
    pub fn check(&self) -> Result<(), InvalidPipeline> {
        self.check_as(&TaskId::generate())
    }

    /// [`check`](Self::check), for a run of this id.
    ///
    /// # Errors
    /// [`InvalidPipeline`] has all mistakes.
    pub fn check_as(&self, run: &TaskId) -> Result<(), InvalidPipeline> {
        Checked::new(self, run, None).map(drop)
    }

    /// Starts a run under a new id. On return all nodes are in the store.
    ///
    /// # Errors
    /// [`StartError`]: the pipeline has mistakes, or a task was not taken in.
    pub fn start(&self, controller: &Controller) -> Result<PipelineRun, StartError> {
        let run = TaskId::generate();
        runner::start(self, Checked::new(self, &run, Some(controller))?, controller, &run)
    }

    /// Starts a run of this id: its tasks are `run:node`. An id whose tasks exist is an error: a run is
    /// never resumed.
    ///
    /// # Errors
    /// [`StartError`]: the pipeline has mistakes, or a task was not taken in.
    pub fn start_as(
        &self,
        controller: &Controller,
        run: &TaskId,
    ) -> Result<PipelineRun, StartError> {
        let checked = Checked::new(self, run, Some(controller))?;
        runner::refuse_taken(self, &checked, controller, run)?;
        runner::start(self, checked, controller, run)
    }

    /// The submission of one of its nodes.
    pub(crate) fn submit(
        &self,
        node: &Node,
        id: TaskId,
        upstream: impl ExactSizeIterator<Item = TaskId>,
    ) -> Submit {
        let label = self.label.as_ref().unwrap_or(&self.name);
        let mut submit = node.submit.clone().id(id).label(format!("{label}/{}", node.id));
        submit = self.tags.iter().fold(submit, |submit, tag| submit.tag(tag.clone()));
        if let Some(key) = self.bucket_key.as_ref().filter(|_| !node.has_bucket_key) {
            submit = submit.bucket_key(key.clone());
        }
        if let Some(priority) = self.priority.filter(|_| !node.has_priority) {
            submit = submit.priority(priority);
        }
        if let Some(grace) = self.grace {
            submit = submit.grace(grace);
        }
        if upstream.len() == 0 { submit.only_new() } else { submit.blocked(upstream) }
    }
}

/// A node's arguments, made of what it is given; a panic of the user's code is an error like another.
pub(crate) fn make_args(args_of: &ArgsOf, upstream: &Upstream) -> Result<Value, Text> {
    let make = std::panic::AssertUnwindSafe(|| args_of(upstream));
    let args = std::panic::catch_unwind(make)
        .unwrap_or_else(|_| Err("making the arguments panicked".into()))?;
    match args.check() {
        Ok(()) => Ok(args),
        Err(error) => Err(format!("the arguments cannot be expressed in JSON: {error}").into()),
    }
}
