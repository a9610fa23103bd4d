//! What `run` and `pipeline` have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;
use crate::Host;
use crate::duration;
use crate::error::CliError;
use crate::module::TaskModule;

/// Where tasks are defined.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModuleArgs {
    /// The task module: a TOML manifest, or a program built with the chongming-task library
    #[arg(long = "tasks", value_name = "MODULE")]
    pub(crate) module: Option<PathBuf>,
}

impl ModuleArgs {
    /// The module that is named, or else this program's own tasks.
    pub(crate) fn load<'a>(&self, host: &'a Host) -> Result<TaskModule<'a>, CliError> {
        match (&self.module, &host.tasks) {
            (Some(path), _) => TaskModule::load(path),
            (None, Some(own)) => Ok(TaskModule::Own(own)),
            (None, None) => Err(CliError::new("no task module is named")
                .hint("add --tasks FILE, a TOML manifest or a program built with the library")),
        }
    }
}

/// How a task or pipeline is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunningArgs {
    /// A name for people
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::text)]
    pub(crate) label: Option<String>,

    /// What the bucket is computed from
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, value_parser = values::text)]
    pub(crate) bucket_key: Option<String>,

    /// Higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::integer(i32::MIN..=i32::MAX))]
    pub(crate) priority: Option<i32>,

    /// One more tag; may be repeated
    #[arg(long = "tag", value_name = "TAG", allow_hyphen_values = true, value_parser = values::text)]
    pub(crate) tags: Vec<String>,

    /// The folder for logs and artifacts [default: beside the database]
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,

    /// How long a stop may take before it becomes a kill [default: the task's own, else 10s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub(crate) grace: Option<Duration>,

    /// How long this process may be silent before its tasks count as lost
    #[arg(
        long,
        value_name = "DURATION", allow_hyphen_values = true,
        default_value = "30s",
        value_parser = values::lease_ttl
    )]
    pub(crate) lease_ttl: Duration,
}
