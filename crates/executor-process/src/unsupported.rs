//! In place of the executor where the system has not what it needs.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chongming_core::{
    Abilities, Carrier, Executor, Launch, Target, TaskDefinition, UnsupportedTarget,
};

use crate::{Echo, ExecutorError};

/// Does nothing on this platform.
pub fn init() {}

/// Does nothing on this platform.
pub fn init_with<I: IntoIterator<Item = TaskDefinition>>(_definitions: impl FnOnce() -> I) {}

/// Cannot be made on this platform.
#[derive(Debug)]
pub enum ProcessExecutor {}

impl ProcessExecutor {
    /// Says that it cannot be made.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> Result<Self, ExecutorError> {
        Self::builder().build()
    }

    /// With options.
    #[must_use]
    pub fn builder() -> ProcessExecutorBuilder {
        ProcessExecutorBuilder
    }
}

/// Options of a [`ProcessExecutor`].
#[derive(Debug, Default)]
pub struct ProcessExecutorBuilder;

impl ProcessExecutorBuilder {
    /// Has no effect on this platform.
    #[must_use]
    pub fn program(self, _program: impl Into<PathBuf>) -> Self {
        self
    }

    /// Has no effect on this platform.
    #[must_use]
    pub fn echo(self, _echo: Echo) -> Self {
        self
    }

    /// Says that it cannot be made.
    ///
    /// # Errors
    /// Always.
    pub fn build(self) -> Result<ProcessExecutor, ExecutorError> {
        Err(ExecutorError::System {
            what: "run external commands on this platform",
            source: io::Error::new(io::ErrorKind::Unsupported, "it needs Linux"),
        })
    }
}

impl Executor for ProcessExecutor {
    fn name(&self) -> &'static str {
        "process"
    }

    fn abilities(&self) -> Abilities {
        match *self {}
    }

    fn check(&self, _target: &Target) -> Result<(), UnsupportedTarget> {
        match *self {}
    }

    fn launch(&self, _launch: Launch) -> Arc<dyn Carrier> {
        match *self {}
    }
}
