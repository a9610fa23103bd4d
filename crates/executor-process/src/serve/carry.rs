//! Carries one attempt: the body on the main thread, its supervisor's orders on another.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use chongming_core::{
    AttemptEnd, AttemptFiles, AttemptSink, Control, Failure, FailureKind, Launch, LogLevel,
    Registry, Report, Signal, Target, TaskContext, TaskId, run_body,
};
use rustix::process::{Signal as Posix, getpgrp, getpid, kill_current_process_group, kill_process};

use super::next;
use super::uplink::Uplink;
use crate::environment::ARTIFACT_DIR;
use crate::protocol::{Down, Start, Up, VERSION};

/// Runs the body to its end and says how it ended.
///
/// # Errors
/// Says why there was nothing to run.
pub(super) fn carry(
    start: Start,
    registry: &Registry,
    orders: impl BufRead + Send + 'static,
    uplink: &Arc<Uplink>,
) -> Result<(), String> {
    let definition = registry.get(&start.name).ok_or_else(|| unknown(&start.name, registry))?;
    let Target::Function(body) = definition.target() else {
        return Err(format!("its task {:?} is no Rust function", start.name));
    };
    let task_id = TaskId::new(&start.task_id).map_err(|error| error.to_string())?;
    let launch = Launch {
        task_id,
        name: start.name.into(),
        attempt: start.attempt,
        target: definition.target().clone(),
        args: start.args,
        upstream: Arc::new(start.upstream.into_iter().map(|(n, v)| (n.into(), v)).collect()),
        files: start.artifact_dir.map(|dir| files(dir.into())),
        sink: Arc::new(Upward(Arc::clone(uplink))),
    };
    let control = Arc::new(Control::default());
    let ear = Arc::clone(&control);
    thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || obey(orders, &ear))
        .map_err(|error| format!("it cannot start a thread: {error}"))?;
    uplink.send(&Up::Hello { protocol: Some(VERSION), stop: true, pause: true }.encode());
    let log = Arc::clone(uplink);
    let log = Arc::new(move |level: LogLevel, message: &str| write_log(&log, level, message));
    let context = TaskContext::with_log_sink(&launch, Arc::clone(&control), Some(log));
    let end = run_body(body, &context, &control, launch.args);
    uplink.finish();
    match end {
        AttemptEnd::Completed(value) => uplink.send(&Up::Result(value).encode()),
        AttemptEnd::Failed(failure) => uplink.send(&Up::Failure(failure).encode()),
        AttemptEnd::Interrupted { message: Some(message) } => {
            let failure = Failure::new(FailureKind::Exception, message);
            uplink.send(&Up::Failure(failure).encode());
        }
        // The end of this process says it.
        AttemptEnd::Interrupted { message: None }
        | AttemptEnd::Unkillable { .. }
        | AttemptEnd::Vanished { .. } => {}
    }
    Ok(())
}

fn unknown(name: &str, registry: &Registry) -> String {
    let mut known: Vec<String> =
        registry.iter().take(20).map(|known| format!("{:?}", known.name())).collect();
    if registry.iter().nth(known.len()).is_some() {
        known.push("…".to_owned());
    }
    match known.as_slice() {
        [] => format!(
            "the program serves no task, so not {name:?} either: it must call chongming_executor_process::init_with, with its task definitions, first in main"
        ),
        known => format!(
            "the program serves no task {name:?}, only {}; give init_with the same definitions as the controller",
            known.join(", ")
        ),
    }
}

/// The environment has the folder's exact name, also one that is no valid text.
fn files(told: PathBuf) -> AttemptFiles {
    let artifact_dir = std::env::var_os(ARTIFACT_DIR).map_or(told, PathBuf::from);
    // Never used: the supervisor writes the log.
    AttemptFiles { log: artifact_dir.with_extension("log"), artifact_dir }
}

/// Passes orders on. When there is nobody left to give any, this process and its group end.
fn obey(mut orders: impl BufRead, control: &Control) {
    loop {
        match next(&mut orders) {
            Ok(Some(Down::Pause { epoch })) => control.signal(Signal::Pause { epoch }),
            Ok(Some(Down::Resume)) => control.signal(Signal::Resume),
            Ok(Some(Down::Stop { reason, grace })) => {
                control.signal(Signal::Stop { reason, grace });
            }
            Ok(Some(Down::Start(_) | Down::List | Down::Unknown)) | Err(_) => {}
            Ok(None) => break,
        }
    }
    let own = getpid();
    if getpgrp() == own {
        let _ = kill_current_process_group(Posix::KILL);
    }
    let _ = kill_process(own, Posix::KILL);
}

fn write_log(uplink: &Uplink, level: LogLevel, message: &str) -> io::Result<()> {
    let level = level.as_str().to_lowercase();
    uplink.send(&Up::Log { level, message: message.to_owned() }.encode());
    Ok(())
}

/// Passes a body's reports on.
struct Upward(Arc<Uplink>);

impl AttemptSink for Upward {
    fn report(&self, report: Report) {
        match report {
            Report::Activity => self.0.send(&Up::Checkpoint.encode()),
            Report::Progress(progress) => self.0.progress(progress),
            Report::Paused { epoch } => self.0.send(&Up::Paused { epoch: Some(epoch) }.encode()),
            // A context reports no others.
            Report::Launched | Report::LaunchFailed(_) | Report::Ended(_) => {}
        }
    }

    /// Its supervisor saw to that before it started this process.
    fn may_begin(&self) -> bool {
        true
    }
}
