//! An executor that is dropped leaves nothing behind, and neither do many launches.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use chongming_core::{AttemptEnd, AttemptSink, Executor, Report, Value};

use crate::breach::{Breach, Outcome, same};
use crate::executor::stage::{Stage, unique};
use crate::executor::threads::await_none;

pub(in crate::executor) fn many_launches_leave_no_threads(stage: Stage<'_>) -> Outcome {
    let parallelism = thread::available_parallelism().map_or(2, usize::from);
    let (key, most) = (unique(), 2 * parallelism + 16);
    for _ in 0..4 * most {
        let end = stage.launch("threads", key)?.end()?;
        let AttemptEnd::Completed(Value::Int(alive)) = end else {
            return Err(Breach::of("the end", "it completes", format_args!("{end:?}")));
        };
        if usize::try_from(alive).is_ok_and(|alive| alive > most) {
            let expected = format_args!("at most {most}");
            return Err(Breach::of("threads that have run a body and live", expected, alive));
        }
    }
    Ok(())
}

pub(in crate::executor) fn its_threads_end_with_it(stage: Stage<'_>) -> Outcome {
    let (key, patience) = (unique(), stage.patience());
    for _ in 0..8 {
        stage.launch("threads", key)?.end()?;
    }
    stage.shut_down()?;
    same("threads that are left", await_none(key, patience), 0)
}

pub(in crate::executor) fn what_still_runs_ends_or_can_be_stopped(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let mut attempt = stage.launch_guest("steps")?;
    let can_kill = stage.executor().abilities().hard_stop;
    stage.shut_down()?;
    if !can_kill {
        attempt.stop("the executor is gone");
        return same("the end", attempt.steps_to_end()?, AttemptEnd::Interrupted { message: None });
    }
    // Without being let go.
    attempt.end().map(drop)
}

/// A sink that is the last to hold the executor.
struct Last {
    executor: Mutex<Option<Arc<dyn Executor>>>,
    dropped: Sender<()>,
    sink: Arc<dyn AttemptSink>,
}

impl AttemptSink for Last {
    fn report(&self, report: Report) {
        let is_end = matches!(report, Report::Ended(_));
        self.sink.report(report);
        if is_end {
            drop(self.executor.lock().unwrap_or_else(PoisonError::into_inner).take());
            let _ = self.dropped.send(());
        }
    }

    fn may_begin(&self) -> bool {
        true
    }
}

pub(in crate::executor) fn a_report_may_drop_it(stage: Stage<'_>) -> Outcome {
    if stage.runs_inline() {
        return stage.signals_come_too_late();
    }
    let (dropped, is_dropped) = channel();
    let patience = stage.patience();
    let mut prepared = stage.prepare_guest("deaf")?;
    let executor = Mutex::new(Some(Arc::clone(stage.executor())));
    let sink = Arc::clone(&prepared.launch.sink);
    prepared.launch.sink = Arc::new(Last { executor, dropped, sink });
    let mut attempt = stage.start(prepared)?;
    attempt.body_comes()?;
    stage.shut_down()?;
    attempt.hang_up();
    let hangs = |_| Breach::of("a report that drops the executor", "it returns", "it hangs");
    is_dropped.recv_timeout(patience).map_err(hangs)
}
