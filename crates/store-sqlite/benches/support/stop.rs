//! A stop that comes from another connection to the store: from the call that writes the command's row to the
//! task's end, durable and told to whoever waits for it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::{CommandKind, Entry, NewCommand, TaskStore};
use chongming_core::{
    Clock, CloseMode, CommandId, Controller, IncarnationId, Status, Submit, SystemClock,
    TaskContext, TaskDefinition, TaskError, TaskId, TaskSnapshot, Trigger, machine,
};

use crate::Anything;

pub(crate) const SAMPLES: usize = 500;
/// Between two samples, so that each finds an idle holder.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// Through a controller on `held`, whose tasks are stopped through `outside`.
pub(crate) fn through_controller(
    held: Arc<dyn TaskStore>,
    outside: &dyn TaskStore,
) -> Result<Vec<Duration>, Anything> {
    let body = |ctx: &TaskContext, ()| -> Result<(), TaskError> {
        loop {
            ctx.sleep(Duration::from_secs(3600))?;
        }
    };
    let controller =
        Controller::builder().store(held).register(TaskDefinition::new("wait", body)).build()?;
    let mut times = Vec::new();
    for _ in 0..SAMPLES {
        let run = controller.submit(Submit::new("wait"))?;
        let is_running = |task: TaskSnapshot| task.status() == Status::Running;
        while !outside.get(run.id())?.is_some_and(is_running) {
            thread::yield_now();
        }
        thread::sleep(PAUSE);
        let stop = stop(run.id(), controller.incarnation());
        let since = Instant::now();
        outside.submit_command(&stop)?;
        let outcome = run.wait(None)?;
        times.push(since.elapsed());
        if outcome.status() != Status::Stopped {
            return Err(format!("{} instead of stopped", outcome.status()).into());
        }
        while outside.commands(run.id())?.iter().any(|command| command.receipt.is_none()) {
            thread::yield_now();
        }
    }
    controller.close(CloseMode::Stop, Duration::from_secs(10), true);
    Ok(times)
}

/// Such a request.
pub(crate) fn stop(task: &TaskId, holder: &IncarnationId) -> NewCommand {
    NewCommand {
        id: CommandId::generate(),
        task_id: task.clone(),
        holder: holder.clone(),
        kind: CommandKind::Stop,
        reason: Some("enough".into()),
        issuer: "bench".into(),
        issued_at: SystemClock::default().wall(),
    }
}

/// A running task, for the raw loop to end.
pub(crate) fn running(store: &dyn TaskStore, holder: &IncarnationId) -> Result<TaskId, Anything> {
    let (id, at) = (TaskId::generate(), SystemClock::default().wall());
    let mut task = TaskSnapshot::pending(id.clone(), "wait", "host:1".into(), at);
    task.supervisor = Some(holder.clone());
    let mut transitions = Vec::new();
    for (to, trigger) in [
        (Status::Queued, Trigger::DependenciesResolved),
        (Status::Starting, Trigger::Dispatch),
        (Status::Running, Trigger::Launched),
    ] {
        transitions.push(machine::apply(&mut task, to, trigger, at, None)?);
    }
    let written = store.write(&[Entry::Create { snapshot: task.into(), transitions }])?;
    if written.iter().any(Result::is_err) {
        return Err("the task was refused".into());
    }
    Ok(id)
}

/// Median and 99th percentile, in microseconds.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    (at(0.5), at(0.99))
}
