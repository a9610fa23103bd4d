//! What is run in the foreground: one task, or a pipeline of them.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use chongming_core::{Outcome, TaskRun, TaskSnapshot, Timestamp};

use super::foreground::Event;
use crate::output::escape::visible;
use crate::views::task::live_line;

/// How a frame of the live display is to be drawn.
#[derive(Clone, Copy)]
pub(super) struct Canvas {
    pub(super) now: Timestamp,
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) color: bool,
}

/// One task, or a pipeline of them, on its way.
pub(super) trait Work {
    /// How it ended.
    type Outcome: Clone;

    /// Its name in notes, harmless.
    fn name(&self) -> String;
    /// Its tasks, always in the same order.
    fn tasks(&self) -> Vec<&TaskRun>;
    /// Has its end told, and what else is worth a line.
    fn watch(&self, events: &Sender<Event>);
    /// How it ended; none while it has not.
    fn outcome(&self) -> Option<Arc<Self::Outcome>>;
    /// The tasks of an outcome.
    fn snapshots(outcome: &mut Self::Outcome) -> Vec<&mut TaskSnapshot>;
    /// Draws the conclusion from them once more, when one of them was changed.
    fn conclude(outcome: &mut Self::Outcome);
    /// What the terminal shows of it while it goes on.
    fn frame(&self, canvas: Canvas) -> Vec<String>;
    /// What is said where nothing is drawn when this one of its tasks has ended.
    fn ended_line(&self, task: usize, now: Timestamp) -> Option<String>;
}

impl Work for TaskRun {
    type Outcome = Outcome;

    fn name(&self) -> String {
        visible(self.id().as_str()).into_owned()
    }

    fn tasks(&self) -> Vec<&TaskRun> {
        vec![self]
    }

    fn watch(&self, events: &Sender<Event>) {
        self.notify(events, Event::Ended);
    }

    fn outcome(&self) -> Option<Arc<Outcome>> {
        TaskRun::outcome(self)
    }

    fn snapshots(outcome: &mut Outcome) -> Vec<&mut TaskSnapshot> {
        vec![Arc::make_mut(&mut outcome.snapshot)]
    }

    fn conclude(_: &mut Outcome) {}

    fn frame(&self, canvas: Canvas) -> Vec<String> {
        let task = self.snapshot();
        task.map(|task| live_line(&task, canvas.now, canvas.columns)).into_iter().collect()
    }

    fn ended_line(&self, _: usize, _: Timestamp) -> Option<String> {
        None
    }
}
