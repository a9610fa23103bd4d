//! `logs`: what a task wrote.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::TaskStore;
use chongming_core::{Status, TaskId, TaskSnapshot, Trigger, attempt_files};
use clap::Args;
use serde::Serialize;

use super::attempt_files::{Place, Places};
use super::{control, find};
use crate::args::control::TaskArg;
use crate::args::global::{Settings, Verbosity};
use crate::args::values;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::{Console, print_note};
use crate::output::json;

/// Pause between two looks at a log that grows.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Pause between two looks whether the task's holder lives.
const HOLDER_EVERY: Duration = Duration::from_secs(2);

/// Show the output of a task's attempt.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogsArgs {
    /// Which one.
    #[command(flatten)]
    pub(crate) task: TaskArg,

    /// Go on showing what is added until the task ends
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// The attempt [default: the latest]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::ordinal())]
    pub(crate) attempt: Option<NonZeroU32>,
}

/// The object of `logs`.
#[derive(Debug, Serialize)]
pub(crate) struct LogJson<'a> {
    /// The task.
    pub(crate) task_id: &'a str,
    /// The attempt.
    pub(crate) attempt: u32,
    /// Where the log lies.
    pub(crate) path: String,
    /// All of it; what is not UTF-8 is replaced.
    pub(crate) output: String,
}

/// Shows it.
pub(super) fn execute(
    args: &LogsArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    if args.follow && settings.json {
        return Err(CliError::new("--json cannot be combined with --follow")
            .hint("leave one of them out: a log that grows is shown as it is"));
    }
    let store = open_store::open(settings)?.store;
    let task = find::task(&store, &args.task.id)?;
    let logs = Logs { root: artifacts(&store, &task, settings)?, id: task.id.clone() };
    let wanted = args.attempt.map(NonZeroU32::get);
    if args.follow {
        follow(&logs, &store, wanted, settings, console)?;
        return Ok(exit_codes::DONE);
    }
    let attempt = match wanted {
        Some(wanted) if wanted > task.attempt => {
            let had = task.attempt;
            return Err(CliError::new(format!(
                "`{}` has no attempt {wanted}: the latest is {had}",
                task.id
            )));
        }
        Some(wanted) => wanted,
        None if task.attempt == 0 => {
            return Err(CliError::new(format!(
                "`{}` is {} and has not been started yet, so it has no log",
                task.id,
                task.status()
            ))
            .hint("--follow waits for it"));
        }
        None => task.attempt,
    };
    let path = logs.path(attempt);
    let Some(mut log) = open(&path)? else {
        return Err(no_log(&store, &task, attempt, &path)?);
    };
    if settings.json {
        let mut output = Vec::new();
        log.read_to_end(&mut output).map_err(|error| unreadable(&path, &error))?;
        let log = LogJson {
            task_id: task.id.as_str(),
            attempt,
            path: path.display().to_string(),
            output: String::from_utf8_lossy(&output).into_owned(),
        };
        json::write_value(console, &log)?;
    } else {
        copy(&mut log, &path, console)?;
    }
    Ok(exit_codes::DONE)
}

/// Where the logs of one task lie.
struct Logs {
    root: PathBuf,
    id: TaskId,
}

impl Logs {
    fn path(&self, attempt: u32) -> PathBuf {
        attempt_files(&self.root, &self.id, attempt).log
    }
}

/// The folder that the task's holder named, if it is on this machine.
fn artifacts(
    store: &Arc<dyn TaskStore>,
    task: &TaskSnapshot,
    settings: &Settings,
) -> Result<PathBuf, CliError> {
    match Places::read(store, settings)?.of(task)? {
        Place::Here(root) => Ok(root),
        Place::Elsewhere { host, root } => {
            let path = attempt_files(&root, &task.id, task.attempt.max(1)).log;
            Err(CliError::new(format!(
                "the logs of `{}` are on the host {host}, in {}",
                task.id,
                path.display()
            ))
            .hint("look there"))
        }
        Place::Nowhere { owner } => {
            Err(CliError::new(format!("the node {owner} that ran `{}` keeps no logs", task.id)))
        }
    }
}

/// Opens a log; `None` where there is none. A body may have put something else in its place, which could keep its
/// reader waiting for ever.
fn open(path: &Path) -> Result<Option<File>, CliError> {
    let opened =
        fs::metadata(path).and_then(|found| found.is_file().then(|| File::open(path)).transpose());
    match opened {
        Ok(Some(log)) => Ok(Some(log)),
        Ok(None) => {
            let path = path.display();
            Err(CliError::new(format!("cannot read the log {path}: it is not a regular file"))
                .hint("something else was put in its place"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// What is said about an attempt without a log: one that was never launched has none.
fn no_log(
    store: &Arc<dyn TaskStore>,
    task: &TaskSnapshot,
    attempt: u32,
    path: &Path,
) -> Result<CliError, CliError> {
    let mut number = 0;
    let mut was_launched = false;
    let mut reason = None;
    for transition in find::whole_history(store, &task.id)? {
        number += u32::from(transition.to == Status::Starting);
        if number == attempt {
            was_launched |= transition.trigger == Trigger::Launched;
            reason = transition.reason;
        }
    }
    if number < attempt || was_launched {
        return Ok(unreadable(path, &ErrorKind::NotFound.into()));
    }
    let failure = task.failure.as_deref().filter(|_| attempt == task.attempt);
    let why = failure.map(|failure| failure.message.clone()).or(reason);
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Ok(CliError::new(format!(
        "attempt {attempt} of `{}` was never launched, so it has no log{why}",
        task.id
    )))
}

/// Shows what is there and what is added, attempt after attempt, until the task has ended.
fn follow(
    logs: &Logs,
    store: &Arc<dyn TaskStore>,
    wanted: Option<u32>,
    settings: &Settings,
    console: &mut Console,
) -> Result<(), CliError> {
    let client = control::client(store, settings);
    let says = settings.verbosity > Verbosity::Quiet;
    let mut attempt = wanted;
    let mut log: Option<File> = None;
    let mut next_holder = Instant::now();
    loop {
        // Before the log: what was written before the end is in it by then.
        let task = find::task(store, &logs.id)?;
        let attempt_now = *attempt.get_or_insert(task.attempt.max(1));
        let is_over = task.attempt > attempt_now
            || task.status().is_terminal()
            || (task.attempt == attempt_now && task.status() == Status::RetryWait);
        let path = logs.path(attempt_now);
        if log.is_none() {
            log = open(&path)?;
        }
        if let Some(log) = &mut log {
            if is_shorter(log).map_err(|error| unreadable(&path, &error))? {
                log.seek(SeekFrom::End(0)).map_err(|error| unreadable(&path, &error))?;
                if says {
                    print_note("the log reached its limit, and some output was cut out of it");
                }
            }
            copy(log, &path, console)?;
            console.flush()?;
        }
        if console.reader_left() {
            return Ok(());
        }
        if is_over {
            let is_last = task.status().is_terminal() && task.attempt <= attempt_now;
            if is_last || wanted.is_some() {
                return Ok(());
            }
            if task.attempt > attempt_now {
                attempt = Some(attempt_now + 1);
                log = None;
                if says {
                    print_note(&format!("attempt {}", attempt_now + 1));
                }
                continue;
            }
        }
        if Instant::now() >= next_holder {
            if client.is_abandoned(&task).map_err(store_error)? {
                print_note(&format!(
                    "`{}` is {} and nobody holds it any more: nothing will be added",
                    task.id,
                    task.status()
                ));
                return Ok(());
            }
            next_holder = Instant::now() + HOLDER_EVERY;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Was something cut out of what was shown already?
fn is_shorter(log: &mut File) -> io::Result<bool> {
    Ok(log.metadata()?.len() < log.stream_position()?)
}

/// Shows the rest of a log, as it is.
fn copy(log: &mut File, path: &Path, console: &mut Console) -> Result<(), CliError> {
    let mut buffer = vec![0; 64 * 1024];
    while !console.reader_left() {
        match log.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => console.write(buffer.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    if error.kind() == ErrorKind::NotFound {
        return CliError::new(format!("there is no log {}", path.display()))
            .hint("it was deleted, or its folder has moved");
    }
    CliError::new(format!("cannot read the log {}: {error}", path.display()))
}
