//! One task in the foreground: waits for its end, passes signals on, shows how far it has come.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use chongming_core::{CloseMode, Closed, Controller, Outcome, TaskRun, Transition};

use super::screen::Screen;
use super::signals::{Caught, Wish};
use crate::args::global::Verbosity;
use crate::error::CliError;
use crate::output::console::terminal_size;
use crate::output::escape::visible;
use crate::views::task::live_line;

/// Pause between two looks at the task, for what is shown of it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that a shutdown may take on top of the task's grace.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(30);

/// A task that runs.
pub(super) struct Foreground<'a> {
    pub(super) controller: &'a Controller,
    pub(super) run: &'a TaskRun,
    pub(super) screen: Option<&'a Screen>,
    pub(super) verbosity: Verbosity,
    /// A line on the terminal tells how far the task has come.
    pub(super) shows_line: bool,
    /// Time that a stop of it may take.
    pub(super) grace: Duration,
}

/// What can happen meanwhile.
enum Event {
    Ended(Arc<Outcome>),
    Asked(Wish),
    Closed(Closed),
}

impl Foreground<'_> {
    /// Waits for its end.
    pub(super) fn attend(&self, signals: Caught) -> Result<Arc<Outcome>, CliError> {
        let (events, happened) = mpsc::channel();
        let (ended, asked) = (events.clone(), events.clone());
        let run = self.run.clone();
        // A send fails when the run is over, and then nobody has to know any more.
        start("wait", move || {
            if let Ok(outcome) = run.wait(None) {
                let _ = ended.send(Event::Ended(outcome));
            }
        })?;
        signals.tell(move |wish| {
            let _ = asked.send(Event::Asked(wish));
        })?;
        let mut closing = None;
        let outcome = self.until_ended(&events, &happened, &mut closing);
        if let Some(closing) = closing {
            // It ends soon: the task has ended, or its time is over.
            let _: thread::Result<()> = JoinHandle::join(closing);
        }
        outcome
    }

    fn until_ended(
        &self,
        events: &Sender<Event>,
        happened: &Receiver<Event>,
        closing: &mut Option<JoinHandle<()>>,
    ) -> Result<Arc<Outcome>, CliError> {
        let mut version = 0;
        loop {
            let event = if self.shows_line || self.verbosity > Verbosity::Normal {
                match happened.recv_timeout(LOOK_EVERY) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Err(unattended()),
                }
            } else {
                Some(happened.recv().map_err(|_| unattended())?)
            };
            self.show(&mut version);
            match event {
                None => {}
                Some(Event::Ended(outcome)) => return Ok(outcome),
                Some(Event::Asked(Wish::Stop)) => self.stop(),
                Some(Event::Asked(Wish::ShutDown)) => *closing = Some(self.shut_down(events)?),
                Some(Event::Asked(Wish::Kill)) => self.run.kill(),
                Some(Event::Closed(closed)) => {
                    // The end, if there was one, was announced before.
                    return self.run.outcome().ok_or_else(|| unfinished(self.run, closed));
                }
            }
        }
    }

    fn stop(&self) {
        // Refused only when it has ended, which its own event tells.
        let _ = self.run.stop(Some("interrupted from the keyboard"));
        self.note(&format!("stopping {}; once more kills it", visible(self.run.id().as_str())));
    }

    fn shut_down(&self, events: &Sender<Event>) -> Result<JoinHandle<()>, CliError> {
        self.note(&format!("shutting down, stopping {}", visible(self.run.id().as_str())));
        let (controller, events) = (self.controller.clone(), events.clone());
        let limit = self.grace.saturating_add(SHUTDOWN_MARGIN);
        start("shutdown", move || {
            let closed = controller.close(CloseMode::Stop, limit, false);
            let _ = events.send(Event::Closed(closed));
        })
    }

    /// Shows where it stands, and what has changed since `version`.
    fn show(&self, version: &mut u64) {
        let Some(screen) = self.screen else { return };
        if self.verbosity > Verbosity::Normal {
            // A store that cannot be read now can be read at the next look.
            let trail = self.run.transitions().unwrap_or_default();
            for transition in trail.iter().filter(|transition| transition.version > *version) {
                screen.note(&told(transition));
            }
            *version = trail.last().map_or(*version, |last| last.version);
        }
        if self.shows_line
            && let Some(task) = self.run.snapshot()
        {
            screen.show(live_line(&task, SystemTime::now().into(), terminal_size().0));
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

fn start(name: &str, life: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, CliError> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(life);
    spawned.map_err(|error| CliError::user(format!("cannot start a thread: {error}")))
}

fn unattended() -> CliError {
    CliError::internal("nothing waits for the task any more")
}

fn unfinished(run: &TaskRun, closed: Closed) -> CliError {
    CliError::user(format!(
        "`{}` could not be stopped in time ({} unfinished, {} unwritten)",
        run.id(),
        closed.unfinished,
        closed.unwritten
    ))
    .hint("`reconcile` settles it once this process's lease has run out")
}
