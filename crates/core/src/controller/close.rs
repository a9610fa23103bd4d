//! The end of a controller (spec 8): intake first, then tasks, then the journal, then the lease. Never
//! takes longer than its limit.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::controller::engine::Engine;
use crate::controller::guarded::Core;
use crate::controller::submit::SubmitError;
use crate::scheduler::{EndCause, Request};

/// What a close does with unfinished tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseMode {
    /// Waits for them; those that are left when half the time is over are stopped.
    Wait,
    /// Stops them, the waiting ones included.
    Stop,
}

/// How far a close came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Tasks that had not ended when the time was over.
    pub unfinished: usize,
    /// Tasks of which something could not be written.
    pub unwritten: usize,
}

impl Closed {
    /// Everything ended and was written.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        self.unfinished == 0 && self.unwritten == 0
    }
}

impl Engine {
    /// Asks every task to end, as a shutdown does; says how many were asked.
    pub(super) fn stop_all(self: &Arc<Self>, cause: EndCause, reason: Option<&str>) -> usize {
        self.with(|core, now| {
            let keys: Vec<_> = core.scheduler.keys().collect();
            let Core { scheduler, out, .. } = core;
            let ask = |key| {
                let reason = reason.map(crate::text::clean);
                scheduler.request(key, Request::End(cause), reason, None, now, out).is_ok()
            };
            keys.into_iter().map(ask).filter(|asked| *asked).count()
        })
    }

    /// Whoever still waits for a submission to be written waits in vain.
    fn reject_pending(self: &Arc<Self>) {
        let core = self.lock();
        for payload in core.scheduler.keys().filter_map(|key| core.scheduler.payload(key)) {
            payload.completion.reject(SubmitError::Closed);
        }
    }

    pub(super) fn close(
        self: &Arc<Self>,
        mode: CloseMode,
        limit: Duration,
        close_store: bool,
        writer: Option<thread::JoinHandle<()>>,
    ) -> Closed {
        let deadline = Instant::now() + limit.min(Duration::from_secs(86_400 * 365));
        let left = || deadline.saturating_duration_since(Instant::now());
        self.with(|core, _| core.is_open = false);
        let all_ended = match mode {
            CloseMode::Wait => self.await_empty(Some(limit / 2)),
            CloseMode::Stop => false,
        };
        if !all_ended {
            self.stop_all(EndCause::Shutdown, Some("the controller was closed"));
            self.await_empty(Some(left()));
        }
        let unfinished = self.lock().scheduler.len();
        // The rest is I/O on a store that may hang, so it is done by others, and waited for.
        self.end_threads();
        let (done, finished) = mpsc::channel();
        let engine = Arc::clone(self);
        let last_acts = move || {
            if let Some(writer) = writer {
                // A writer that panicked has nothing left to write.
                let _ = writer.join();
            }
            engine.reject_pending();
            if engine.lease.is_node()
                && let Err(error) = engine.retire()
            {
                engine.note_fault(None, error.to_string());
            }
            if close_store && let Err(error) = engine.store.close() {
                engine.note_fault(None, error.to_string());
            }
            // Nobody listens any more when the limit has passed.
            let _ = done.send(());
        };
        match thread::Builder::new().name("task-close".into()).spawn(last_acts) {
            // A time that has run out shows in what is left unwritten.
            Ok(_) => drop(finished.recv_timeout(left())),
            Err(error) => self.note_fault(None, format!("no thread for the last writes: {error}")),
        }
        Closed { unfinished, unwritten: self.lock().journal.unwritten() }
    }
}
