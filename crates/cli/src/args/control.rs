//! What `stop`, `pause`, `resume` and `cancel` have in common.

use std::time::Duration;

use chongming_core::TaskId;
use clap::Args;

use super::values;
use crate::duration;

/// Which tasks, why, and whether to wait.
#[derive(Clone, Debug, Args)]
pub(crate) struct ControlArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true, value_parser = values::task_id)]
    pub(crate) ids: Vec<TaskId>,

    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,

    /// Wait so long for it to be confirmed; exit 3 when it is not
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
}

/// The one task that a command is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct TaskArg {
    /// The task
    #[arg(value_name = "ID", value_parser = values::task_id)]
    pub(crate) id: TaskId,
}
