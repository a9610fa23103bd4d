//! What is known after a run: the store's rows, the bodies' own marks, and the monkey's log. Plain data in
//! plain words: the checker shares no type with what it checks.
//!
//! All times are microseconds of one wall clock: everything runs on one machine.

use std::collections::BTreeMap;

/// Microseconds since 1970.
pub(crate) type Micros = i64;

/// Everything that the checker is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) tasks: Vec<Task>,
    /// In the order in which they were appended.
    pub(crate) marks: Vec<Mark>,
    pub(crate) supervisors: Vec<Supervisor>,
    /// Node rows, by incarnation.
    pub(crate) nodes: BTreeMap<String, Node>,
    /// When the store could not be written.
    pub(crate) outages: Vec<Span>,
    /// When somebody who was frozen held the lock of the file: nobody else could write.
    pub(crate) locked: Vec<Span>,
    /// When the whole machine stood still.
    pub(crate) stalls: Vec<Span>,
    /// How long a lease lasts without renewal.
    pub(crate) lease: Micros,
    /// The reasons of all command rows: one for each request to a holder.
    pub(crate) commands: Vec<String>,
    /// What control commands answered.
    pub(crate) answers: Vec<Answer>,
    /// Tasks whose lock is held by somebody when all supervisors are gone.
    pub(crate) still_locked: Vec<String>,
    /// Programs that did not end when all was over.
    pub(crate) stuck: Vec<String>,
    /// Programs that said that they panicked.
    pub(crate) panics: Vec<String>,
}

/// The process of an incarnation. Numbers are used again, so it takes its start, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) pid: u32,
    pub(crate) started: Micros,
}

/// From one time to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Micros,
    pub(crate) to: Micros,
}

/// A process was stopped at some time from `from` to `stopped`, and went on at some time from `waking` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freeze {
    pub(crate) from: Micros,
    pub(crate) stopped: Micros,
    pub(crate) waking: Micros,
    pub(crate) to: Micros,
}

/// A task as the store has it in the end.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) version: u64,
    /// The incarnation that held it last.
    pub(crate) supervisor: Option<String>,
    pub(crate) rows: Vec<Row>,
}

/// A row of its trail.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) version: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) at: Micros,
    pub(crate) trigger: String,
    pub(crate) reason: Option<String>,
}

/// What a body wrote down about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) what: Moment,
    pub(crate) task: String,
    pub(crate) attempt: u32,
    /// The number of the supervisor that started it.
    pub(crate) supervisor: u32,
    /// When its thread last looked at the clock for the controller, if it runs on one of the supervisor's: that
    /// is when it asked whether it may begin.
    pub(crate) checked: Option<Micros>,
    /// Its first step.
    pub(crate) began: Micros,
    /// When it wrote this down.
    pub(crate) at: Micros,
}

impl Mark {
    /// Does a body begin here?
    pub(crate) const fn is_begin(&self) -> bool {
        match self.what {
            Moment::Begin | Moment::BeginBeside => true,
            Moment::Success | Moment::End => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It began, and nothing else of this task was there.
    Begin,
    /// It began while the lock of this task was held by an earlier body or what that left behind.
    BeginBeside,
    /// It came to its end and is about to say that all went well.
    Success,
    /// It came to its end otherwise.
    End,
}

/// The life of a supervisor, as the monkey knows it.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    pub(crate) number: u32,
    pub(crate) pid: u32,
    /// The task that it runs, if it runs just one.
    pub(crate) task: Option<String>,
    /// To its end, or to when it was last seen, if it ended by itself.
    pub(crate) life: Span,
    pub(crate) was_killed: bool,
    /// It ended by itself, saying that its task succeeded.
    pub(crate) claims_success: bool,
    pub(crate) frozen: Vec<Freeze>,
}

/// What a control command said about one request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The reason that was given: no other control command gave it.
    pub(crate) reason: String,
    pub(crate) accepted: bool,
}
