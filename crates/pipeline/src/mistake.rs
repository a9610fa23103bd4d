//! What can be wrong with a pipeline: all of it is told at once, before anything is submitted.

use std::fmt;
use std::io;

use chongming_core::{InvalidText, SubmitError, Text};

/// One thing that is wrong with a pipeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Mistake {
    /// It has no node.
    Empty,
    /// The pipeline's name, the run's id, a node's id, or a task's id made of both is no valid text.
    Text(InvalidText),
    /// Several nodes have the same id.
    DuplicateId(Text),
    /// A node waits for one that there is not.
    UnknownDependency {
        /// The node.
        node: Text,
        /// What it waits for.
        dependency: Text,
    },
    /// A node waits for itself.
    SelfDependency(Text),
    /// A node names a dependency more than once.
    RepeatedDependency {
        /// The node.
        node: Text,
        /// What it waits for.
        dependency: Text,
    },
    /// Nodes wait for one another in a circle: each for the next, and the last for the first.
    Cycle(Vec<Text>),
    /// The controller cannot take a node's task in: an unknown task, arguments that are no JSON, a bucket
    /// that is not this node's.
    Submit {
        /// The node.
        node: Text,
        /// Why not.
        error: SubmitError,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it has no node; add one"),
            Self::Text(error) => error.fmt(f),
            Self::DuplicateId(id) => write!(f, "more than one node is named {id:?}"),
            Self::UnknownDependency { node, dependency } => {
                write!(f, "node {node:?} waits for {dependency:?}, which is no node")
            }
            Self::SelfDependency(node) => write!(f, "node {node:?} waits for itself"),
            Self::RepeatedDependency { node, dependency } => {
                write!(f, "node {node:?} names {dependency:?} more than once")
            }
            Self::Cycle(nodes) => {
                f.write_str("these nodes wait for one another: ")?;
                nodes.iter().chain(nodes.first()).enumerate().try_for_each(|(i, node)| {
                    write!(f, "{}{}", if i == 0 { "" } else { " → " }, node.escape_debug())
                })
            }
            Self::Submit { node, error } => write!(f, "node {node:?}: {error}"),
        }
    }
}

/// A pipeline that cannot be run as it is. Nothing was submitted.
#[derive(Clone, Debug)]
pub struct InvalidPipeline {
    /// Its name.
    pub pipeline: Text,
    /// Everything that is wrong with it.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for InvalidPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipeline {:?} cannot be run", self.pipeline)?;
        self.mistakes
            .iter()
            .enumerate()
            .try_for_each(|(i, mistake)| write!(f, "{}{mistake}", if i == 0 { ": " } else { "; " }))
    }
}

impl std::error::Error for InvalidPipeline {}

/// Why a run could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Nothing was submitted.
    Invalid(InvalidPipeline),
    /// A node's task was not taken in, such as for an id that exists; those that were have been withdrawn.
    Submit {
        /// The node.
        node: Text,
        /// Why not.
        error: SubmitError,
    },
    /// The run's thread could not be started; what was submitted has been withdrawn.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Submit { node, error } => write!(f, "node {node:?} cannot be run: {error}"),
            Self::Thread(error) => write!(f, "a thread could not be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<InvalidPipeline> for StartError {
    fn from(error: InvalidPipeline) -> Self {
        Self::Invalid(error)
    }
}
