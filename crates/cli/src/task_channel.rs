//! The descriptor on which a task that runs as a command speaks to its supervisor.

use std::io::{self, Write};
use std::path::PathBuf;

use chongming_executor_process::MAX_LINE;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::fs::{flock, fstat, open};
use rustix::io::Errno;

use crate::error::CliError;

/// Names the descriptor's number.
const VARIABLE: &str = "CHONGMING_TASK_OUT";
/// Names the pipe that it leads to, by its inode.
const PIPE: &str = "CHONGMING_TASK_PIPE";

/// The writing end of the pipe to the supervisor.
pub(crate) struct TaskChannel(std::fs::File);

impl TaskChannel {
    /// The channel that this process inherited from its task.
    pub(crate) fn of_process() -> Result<Self, CliError> {
        let Some(number) = std::env::var_os(VARIABLE).filter(|number| !number.is_empty()) else {
            return Err(CliError::new(format!(
                "nobody is there to report to: {VARIABLE} is not set, so this is no part of a task"
            ))
            .hint("`report` is for commands that `run` or `pipeline` started"));
        };
        let closed = |why: &str| {
            CliError::new(format!(
                "{VARIABLE} names descriptor {}, which is {why}",
                number.display()
            ))
            .hint("a task's programs must inherit it; do not close or reuse it")
        };
        let Some(number) = number.to_str().and_then(|number| number.parse::<u16>().ok()) else {
            return Err(closed("no number of a descriptor"));
        };
        // Opened anew and without waiting: its lock is our own, and a pipe that nobody reads is an error.
        let path = PathBuf::from(format!("/dev/fd/{number}"));
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = open(&path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::BADF => closed("not open"),
            Errno::NXIO => gone(),
            other => CliError::new(format!("cannot open {}: {other}", path.display())),
        })?;
        let stat = fstat(&pipe).map_err(|errno| unwritable(&errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
            return Err(closed("no pipe to a supervisor"));
        }
        let ours = std::env::var(PIPE).ok().and_then(|inode| inode.parse::<u64>().ok());
        if ours != Some(stat.st_ino) {
            return Err(closed("another pipe than the one to the supervisor"));
        }
        let blocking = fcntl_getfl(&pipe)
            .and_then(|flags| fcntl_setfl(&pipe, flags.difference(OFlags::NONBLOCK)));
        blocking.map_err(|errno| unwritable(&errno.into()))?;
        Ok(Self(pipe.into()))
    }

    /// Writes a line whole. The system does so by itself for a short one; reports that are longer take turns,
    /// so that no two of them mix.
    pub(crate) fn write_line(&mut self, line: &[u8]) -> Result<(), CliError> {
        if line.len() > MAX_LINE {
            return Err(CliError::new(format!(
                "the message has {} bytes, and the supervisor takes {MAX_LINE} at most",
                line.len()
            ))
            .hint("write it to a file in CHONGMING_ARTIFACT_DIR, and report where it is"));
        }
        flock(&self.0, FlockOperation::LockExclusive).map_err(|errno| unwritable(&errno.into()))?;
        self.0.write_all(line).map_err(|error| unwritable(&error))
    }
}

fn gone() -> CliError {
    CliError::new("the supervisor does not listen any more")
}

fn unwritable(error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => gone(),
        _ => CliError::new(format!("cannot write to the supervisor: {error}")),
    }
}
