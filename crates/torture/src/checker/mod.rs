//! The referee: what no crash, freeze or outage excuses, judged from what is left behind.
//!
//! What a fault explains is said in [`excuses`], and is as narrow as is honest: only what the specification
//! allows for a holder that was cut off from its store, and only for the task and the moment that this explains.

mod bodies;
mod excuses;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::{History, Mark, Micros, Moment, Row, Task};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// A body ran, and the store has no start of that attempt.
    NeverStarted,
    /// One attempt ran twice.
    AttemptTwice,
    /// Two attempts of one task at the same time.
    Overlap,
    /// A body began after its task had ended.
    BeganAfterEnd,
    /// A step that the table of transitions does not have.
    IllegalStep,
    /// Versions that do not follow one another, or a row that does not begin where the one before ended.
    BrokenTrail,
    /// A row after a terminal one.
    AfterTerminal,
    /// A task declared lost whose holder lived.
    LiveLost,
    /// A task taken over whose holder lived.
    LiveTaken,
    /// Lost without a lease that expired: the product let a carrier slip.
    Vanished,
    /// One request had two effects, or one that was refused had any.
    CommandTwice,
    /// `succeeded`, and no body of its holder said so.
    SuccessUnearned,
    /// A program said that its task succeeded, and the store says otherwise.
    PromiseBroken,
    /// A body, or what it started, outlives every supervisor.
    ChildAlive,
    /// Work in flight that no reconcile settled.
    LeftInFlight,
    /// A program that never ended.
    Stuck,
    /// A program panicked.
    Panicked,
}

/// A violation and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) violation: Violation,
    pub(crate) subject: String,
    pub(crate) detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.violation, self.subject, self.detail)
    }
}

/// Everything that is wrong with a history.
pub(crate) fn check(history: &History) -> Vec<Finding> {
    let mut marks: BTreeMap<&str, Vec<&Mark>> = BTreeMap::new();
    for mark in &history.marks {
        marks.entry(&mark.task).or_default().push(mark);
    }
    let mut checker = Checker { history, marks, findings: Vec::new() };
    let tasks: BTreeMap<&str, &Task> = history.tasks.iter().map(|t| (t.id.as_str(), t)).collect();
    for task in &history.tasks {
        checker.trail(task);
        checker.losses(task);
        checker.takings(task);
        checker.settled(task);
        checker.earned(task);
    }
    checker.bodies(&tasks);
    checker.commands();
    checker.promises(&tasks);
    for task in &history.still_locked {
        checker.found(Violation::ChildAlive, task, "its lock is held".into());
    }
    for program in &history.stuck {
        checker.found(Violation::Stuck, program, "it was told to end, and did not".into());
    }
    for panic in &history.panics {
        checker.found(Violation::Panicked, "a program", panic.clone());
    }
    checker.findings
}

struct Checker<'a> {
    history: &'a History,
    /// Of each task.
    marks: BTreeMap<&'a str, Vec<&'a Mark>>,
    findings: Vec<Finding>,
}

impl<'a> Checker<'a> {
    fn marks_of(&self, task: &str) -> impl Iterator<Item = &'a Mark> + use<'a> {
        self.marks.get(task).cloned().unwrap_or_default().into_iter()
    }

    fn found(&mut self, violation: Violation, subject: &str, detail: String) {
        self.findings.push(Finding { violation, subject: subject.to_owned(), detail });
    }

    /// Versions without gap or repetition, steps that the table has, nothing after an end. Nothing excuses
    /// these: rows that could not be written in time are written together later, or not at all.
    fn trail(&mut self, task: &Task) {
        let (mut status, mut version) = ("pending", 0);
        for row in &task.rows {
            let Row { from, to, trigger, .. } = row;
            if row.version != version + 1 || from != status {
                let detail = format!(
                    "{status} at version {version} is followed by {from} -> {to} at {}",
                    row.version
                );
                self.found(Violation::BrokenTrail, &task.id, detail);
            }
            if table::is_terminal(from) {
                let detail = format!("{from} -> {to} on {trigger} at version {}", row.version);
                self.found(Violation::AfterTerminal, &task.id, detail);
            } else if !table::is_legal(from, to, trigger) {
                let detail = format!("{from} -> {to} on {trigger} at version {}", row.version);
                self.found(Violation::IllegalStep, &task.id, detail);
            }
            (status, version) = (to, row.version);
        }
        if task.status != status || task.version != version {
            let detail = format!(
                "its trail ends with {status} at version {version}, the task is {} at {}",
                task.status, task.version
            );
            self.found(Violation::BrokenTrail, &task.id, detail);
        }
    }

    /// Nobody is declared lost whose lease had not run out, or whom nothing kept from renewing it; and nobody
    /// loses a carrier.
    fn losses(&mut self, task: &Task) {
        for row in task.rows.iter().filter(|row| row.to == "lost") {
            let Some(holder) = self.history.holder(task) else {
                let holder = task.supervisor.as_deref().unwrap_or("nobody");
                let detail = format!("its holder {holder} has no node row of a program of ours");
                self.found(Violation::LiveLost, &task.id, detail);
                continue;
            };
            match row.trigger.as_str() {
                "recovery:lease_expired" if !self.history.may_have_lapsed(holder, row.at) => {
                    let detail = format!(
                        "supervisor {} held it, and nothing kept it from renewing its lease before {}",
                        holder.number, row.at
                    );
                    self.found(Violation::LiveLost, &task.id, detail);
                }
                "recovery:lease_expired" => {}
                trigger if !self.history.has_just_woken(holder, row.at) => {
                    self.found(Violation::Vanished, &task.id, format!("lost on {trigger}"));
                }
                _ => {}
            }
        }
    }

    /// Nobody takes a task over from one whose lease had not run out. Who held it is known where a body of it had
    /// begun since it was last taken over.
    fn takings(&mut self, task: &Task) {
        let mut since = Micros::MIN;
        for row in task.rows.iter().filter(|row| row.trigger == "recovery:adopted") {
            let held = |mark: &Mark| since < mark.began && mark.began < row.at;
            let last = self.marks_of(&task.id).filter(|mark| mark.is_begin() && held(mark));
            let last = last.max_by_key(|mark| mark.began);
            since = row.at;
            let Some(mark) = last.filter(|m| !self.history.is_unwritten(m, Some(task))) else {
                continue;
            };
            let holder = self.history.supervisor_of(mark);
            if !holder.is_some_and(|holder| self.history.may_have_lapsed(holder, row.at)) {
                let detail = format!(
                    "supervisor {} held it, and nothing kept it from renewing its lease before {}",
                    mark.supervisor, row.at
                );
                self.found(Violation::LiveTaken, &task.id, detail);
            }
        }
    }

    fn settled(&mut self, task: &Task) {
        if table::is_in_flight(&task.status) {
            self.found(Violation::LeftInFlight, &task.id, format!("it is {}", task.status));
        }
    }

    fn earned(&mut self, task: &Task) {
        let holder = self.history.holder(task).map(|holder| holder.number);
        let said = |mark: &Mark| {
            let is_holders = holder.is_none_or(|number| number == mark.supervisor);
            mark.what == Moment::Success && is_holders
        };
        if task.status == "succeeded" && !self.marks_of(&task.id).any(said) {
            self.found(Violation::SuccessUnearned, &task.id, "no body came to its end".into());
        }
    }

    fn commands(&mut self) {
        let mut effects: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
        for task in &self.history.tasks {
            for row in task.rows.iter().filter(|row| row.trigger.starts_with("user:")) {
                if let Some(reason) = &row.reason {
                    effects.entry(reason).or_default().push((&task.id, row.version));
                }
            }
        }
        let refused: BTreeSet<&str> =
            self.history.answers.iter().filter(|a| !a.accepted).map(|a| &*a.reason).collect();
        for (reason, rows) in effects {
            // Directly, or once for each holder that was asked.
            let asked = self.history.commands.iter().filter(|command| *command == reason).count();
            let allowed = if refused.contains(reason) { 0 } else { asked.max(1) };
            if rows.len() > allowed {
                let detail = format!("{} effects, of {allowed} allowed: {rows:?}", rows.len());
                self.found(Violation::CommandTwice, reason, detail);
            }
        }
    }

    /// Whoever says that a task succeeded has seen it stored, unless the store could not be written.
    fn promises(&mut self, tasks: &BTreeMap<&str, &Task>) {
        for supervisor in self.history.supervisors.iter().filter(|s| s.claims_success) {
            let Some(id) = supervisor.task.as_deref() else { continue };
            let status = tasks.get(id).map_or("missing", |task| task.status.as_str());
            if status != "succeeded" && !self.history.ended_in_outage(supervisor) {
                let detail = format!("supervisor {} said so, it is {status}", supervisor.number);
                self.found(Violation::PromiseBroken, id, detail);
            }
        }
    }
}
