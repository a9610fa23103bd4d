//! Work in the foreground: waits for its end, passes signals on, shows how far it has come.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use chongming_core::{CloseMode, Closed, Controller, Transition};

use super::screen::Screen;
use super::signals::{Caught, Wish};
use super::work::{Canvas, Work};
use crate::args::global::Verbosity;
use crate::error::CliError;
use crate::output::console::terminal_size;
use crate::output::escape::visible;

/// Pause between two looks at the tasks, for what is shown of them.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that a shutdown may take on top of the tasks' grace.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(30);

/// Work that goes on.
pub(super) struct Foreground<'a, W> {
    pub(super) controller: &'a Controller,
    pub(super) work: &'a W,
    pub(super) screen: Option<&'a Screen>,
    pub(super) verbosity: Verbosity,
    /// Lines on the terminal tell how far the work has come.
    pub(super) is_live: bool,
    pub(super) color: bool,
    /// Time that a stop of it may take.
    pub(super) grace: Duration,
}

/// What can happen meanwhile.
pub(super) enum Event {
    /// The work has ended.
    Ended,
    /// One of its tasks has.
    TaskEnded(usize),
    /// A signal came.
    Asked(Wish),
    /// The shutdown that a signal asked for is over.
    Closed(Closed),
}

impl<W: Work> Foreground<'_, W> {
    /// Waits for its end.
    pub(super) fn attend(&self, signals: Caught) -> Result<Arc<W::Outcome>, CliError> {
        let (events, happened) = mpsc::channel();
        self.work.watch(&events);
        let asked = events.clone();
        signals.tell(move |wish| {
            // A send fails when the run is over, and then nobody has to know any more.
            let _ = asked.send(Event::Asked(wish));
        })?;
        let mut closing = None;
        let outcome = self.until_ended(&events, &happened, &mut closing);
        if let Some(closing) = closing {
            // It ends soon: the work has ended, or its time is over.
            let _: thread::Result<()> = JoinHandle::join(closing);
        }
        outcome
    }

    fn until_ended(
        &self,
        events: &Sender<Event>,
        happened: &Receiver<Event>,
        closing: &mut Option<JoinHandle<()>>,
    ) -> Result<Arc<W::Outcome>, CliError> {
        let mut versions = vec![0; self.work.tasks().len()];
        let mut is_told = vec![false; versions.len()];
        loop {
            let event = if self.is_live || self.verbosity > Verbosity::Normal {
                match happened.recv_timeout(LOOK_EVERY) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Err(unattended()),
                }
            } else {
                Some(happened.recv().map_err(|_| unattended())?)
            };
            match event {
                // In between, there is more to do than to look.
                Some(Event::TaskEnded(task)) => {
                    self.tell_end(task, &mut is_told);
                    continue;
                }
                None | Some(Event::Ended | Event::Asked(_) | Event::Closed(_)) => {
                    self.show(&mut versions);
                }
            }
            match event {
                None | Some(Event::TaskEnded(_)) => {}
                Some(Event::Ended) => {
                    // The last of its tasks may be announced after the work itself.
                    (0..versions.len()).for_each(|task| self.tell_end(task, &mut is_told));
                    return self.work.outcome().ok_or_else(unattended);
                }
                Some(Event::Asked(Wish::Stop)) => self.stop(),
                Some(Event::Asked(Wish::ShutDown)) => *closing = Some(self.shut_down(events)?),
                Some(Event::Asked(Wish::Kill)) => {
                    self.work.tasks().iter().for_each(|task| task.kill());
                }
                Some(Event::Closed(closed)) => {
                    return self.after_close(happened, closed);
                }
            }
        }
    }

    /// The end, if there was one, is announced soon.
    fn after_close(
        &self,
        happened: &Receiver<Event>,
        closed: Closed,
    ) -> Result<Arc<W::Outcome>, CliError> {
        if closed.unfinished == 0 {
            while let Ok(event) = happened.recv() {
                if matches!(event, Event::Ended) {
                    break;
                }
            }
        }
        self.work.outcome().ok_or_else(|| unfinished(&self.work.name(), closed))
    }

    fn stop(&self) {
        self.controller.stop_all(Some("interrupted from the keyboard"));
        self.note(&format!("stopping {}; once more kills it", self.work.name()));
    }

    fn shut_down(&self, events: &Sender<Event>) -> Result<JoinHandle<()>, CliError> {
        self.note(&format!("shutting down, stopping {}", self.work.name()));
        let (controller, events) = (self.controller.clone(), events.clone());
        let limit = self.grace.saturating_add(SHUTDOWN_MARGIN);
        let close = move || {
            let closed = controller.close(CloseMode::Stop, limit, false);
            let _ = events.send(Event::Closed(closed));
        };
        let spawned = thread::Builder::new().name("shutdown".to_owned()).spawn(close);
        spawned.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))
    }

    /// Shows where it stands, and what has changed since these versions.
    fn show(&self, versions: &mut [u64]) {
        let Some(screen) = self.screen else { return };
        if self.verbosity > Verbosity::Normal {
            for (task, version) in self.work.tasks().into_iter().zip(versions) {
                if task.snapshot().is_some_and(|task| task.status_version() == *version) {
                    continue;
                }
                // A store that cannot be read now can be read at the next look.
                let trail = task.transitions().unwrap_or_default();
                for transition in trail.iter().filter(|transition| transition.version > *version) {
                    screen.note(&told(transition));
                }
                *version = trail.last().map_or(*version, |last| last.version);
            }
        }
        if self.is_live {
            let (columns, rows) = terminal_size();
            let now = SystemTime::now().into();
            screen.show(self.work.frame(Canvas { now, columns, rows, color: self.color }));
        }
    }

    /// Where nothing is drawn, and nothing more is told anyway, the end of each task has a line.
    fn tell_end(&self, task: usize, is_told: &mut [bool]) {
        let Some(is_told) = is_told.get_mut(task).filter(|is_told| !**is_told) else { return };
        *is_told = true;
        if !self.is_live
            && self.verbosity == Verbosity::Normal
            && let Some(line) = self.work.ended_line(task, SystemTime::now().into())
        {
            self.note(&line);
        }
    }

    fn note(&self, line: &str) {
        if let Some(screen) = self.screen {
            screen.note(line);
        }
    }
}

fn told(transition: &Transition) -> String {
    let Transition { task_id, from, to, trigger, reason, .. } = transition;
    let reason = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let line = format!("{task_id}: {from} -> {to}, {trigger}{reason}");
    visible(&line).into_owned()
}

fn unattended() -> CliError {
    CliError::internal("nothing waits for the task any more")
}

fn unfinished(name: &str, closed: Closed) -> CliError {
    CliError::new(format!(
        "`{name}` could not be stopped in time ({} unfinished, {} unwritten)",
        closed.unfinished, closed.unwritten
    ))
    .hint("`reconcile` settles it once this process's lease has run out")
}
