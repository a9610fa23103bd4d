//! What this executor runs: an external command.

use std::any::Any;
use std::fmt;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chongming_core::Launch;
#[cfg(target_os = "linux")]
use chongming_core::Target;

use crate::error::GUARDIAN;

/// Size of an attempt's log unless the command says otherwise: 16 MiB.
pub const DEFAULT_MAX_LOG_BYTES: u64 = 16 * 1024 * 1024;

/// Names the executor that a process belongs to, and the attempt. Nested supervisors add theirs after a comma.
pub(crate) const SUPERVISOR: &str = "CHONGMING_SUPERVISOR";

/// Tells a program that it is to serve a task (or the list of its tasks): the inode of the pipe that it has for
/// what it says. Processes that the program starts inherit the variable, but not the pipe.
pub(crate) const SERVE: &str = "CHONGMING_SERVE";

/// The inode of the pipe for what a task says, by which `report` knows it from any other pipe.
pub(crate) const TASK_PIPE: &str = "CHONGMING_TASK_PIPE";

/// Variables that no command can set: they say whose a process is.
pub const RESERVED_VARIABLES: [&str; 4] = [SUPERVISOR, GUARDIAN, SERVE, TASK_PIPE];

/// The smallest size that a log can be held to: it leaves room for both ends, and for the line between them
/// that tells of the cut.
pub const MIN_MAX_LOG_BYTES: u64 = 1024;

/// An external command. Never goes through a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. A program with a slash is relative to `cwd`, any other is looked for
    /// on the command's `PATH`.
    pub argv: Vec<String>,
    /// Added to the inherited environment; the later of two with the same name wins. None of
    /// [`RESERVED_VARIABLES`].
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Time that a stop may take. What is left of the group when its leader has ended gets this long too,
    /// but at most a second.
    pub grace: Duration,
    /// Size that the log of one attempt may have: of a longer one the middle is cut out. Less than
    /// [`MIN_MAX_LOG_BYTES`] is taken for that.
    pub max_log_bytes: u64,
    /// The program is built with this library and calls [`init_with`](crate::init_with): it is to run its
    /// task of this name, with the attempt's arguments.
    pub serves: Option<String>,
}

impl Command {
    /// A command in this program's working directory, with default limits.
    pub fn new<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: PathBuf::from("."),
            grace: Duration::from_secs(10),
            max_log_bytes: DEFAULT_MAX_LOG_BYTES,
            serves: None,
        }
    }

    /// The task of this name of a program that is built with this library and calls
    /// [`init_with`](crate::init_with). A program without a slash is looked for on `PATH`.
    pub fn serving(program: impl Into<String>, task: impl Into<String>) -> Self {
        Self { serves: Some(task.into()), ..Self::new([program]) }
    }

    /// For [`TaskDefinition::external`](chongming_core::TaskDefinition::external).
    #[must_use]
    pub fn into_target(self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(self)
    }
}

type Make = dyn Fn(&Launch) -> Result<Command, String> + Send + Sync;

/// A command that depends on its attempt, such as on its arguments.
pub struct CommandTemplate(
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read by the executor"))]
    Box<Make>,
);

impl CommandTemplate {
    /// Calls `make` for each attempt; its error fails the launch.
    pub fn new(make: impl Fn(&Launch) -> Result<Command, String> + Send + Sync + 'static) -> Self {
        Self(Box::new(make))
    }

    /// For [`TaskDefinition::external`](chongming_core::TaskDefinition::external).
    #[must_use]
    pub fn into_target(self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(self)
    }
}

impl fmt::Debug for CommandTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandTemplate")
    }
}

/// Is it one of ours?
#[cfg(target_os = "linux")]
pub(crate) fn is_command(any: &(dyn Any + Send + Sync)) -> bool {
    any.is::<Command>() || any.is::<CommandTemplate>()
}

/// The command of one attempt; `program` is what runs a Rust function.
#[cfg(target_os = "linux")]
pub(crate) fn command_of(launch: &Launch, program: &Path) -> Result<Command, String> {
    let any = match &launch.target {
        Target::External(any) => any,
        Target::Function(_) => {
            let program = program
                .to_str()
                .ok_or_else(|| format!("the path of its program, {program:?}, is no valid text"))?;
            return Ok(Command::serving(program, &*launch.name));
        }
    };
    if let Some(command) = any.downcast_ref::<Command>() {
        return Ok(command.clone());
    }
    match any.downcast_ref::<CommandTemplate>() {
        Some(template) => (template.0)(launch),
        None => Err("the target is no external command".to_owned()),
    }
}
