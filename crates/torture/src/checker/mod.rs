//! The referee: what no crash, freeze or outage excuses, judged from what is left behind.
//!
//! What a fault excuses is said at each rule, and is as narrow as is honest: only what the specification
//! allows while a store cannot be reached, or for a holder that was cut off from it.

mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::{History, Mark, Micros, Moment, Row, Span, Supervisor, Task};

/// A write may fail this long after a store is back: a pause between two tries grows as long as the outage.
const RECOVERY: Micros = 8_000_000;
/// A holder that wakes renews its lease at once, as soon as it gets a processor.
const WAKING: Micros = 500_000;
/// Between a decision and its row, or its effect, on a busy machine.
const SLACK: Micros = 100_000;

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
    /// Lost without a lease that expired: the product let a carrier slip.
    Vanished,
    /// One request had two effects, or one that was refused had any.
    CommandTwice,
    /// `succeeded`, and no body said so.
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
    let mut checker = Checker { history, findings: Vec::new() };
    let tasks: BTreeMap<&str, &Task> = history.tasks.iter().map(|t| (t.id.as_str(), t)).collect();
    for task in &history.tasks {
        checker.trail(task);
        checker.losses(task);
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
    findings: Vec<Finding>,
}

impl Checker<'_> {
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

    /// Nobody is declared lost who lives. A holder that was frozen or could not reach the store within the
    /// last lease may be; one that was started by nobody we know is none of ours.
    fn losses(&mut self, task: &Task) {
        for row in task.rows.iter().filter(|row| row.to == "lost") {
            match row.trigger.as_str() {
                "recovery:lease_expired" => {
                    let Some(holder) = self.holder(task, row.at) else { continue };
                    let lease = Span { from: row.at - self.history.lease, to: row.at };
                    let lived = holder.life.from <= lease.from && lease.to <= holder.life.to;
                    if lived && !self.was_cut_off(holder, lease) {
                        let detail = format!(
                            "supervisor {} held it, lived and could write for the whole lease before {}",
                            holder.number, row.at
                        );
                        self.found(Violation::LiveLost, &task.id, detail);
                    }
                }
                trigger => {
                    let life = Span { from: row.at - self.history.lease, to: row.at };
                    let excused =
                        self.holder(task, row.at).is_some_and(|h| self.was_cut_off(h, life));
                    if !excused {
                        self.found(Violation::Vanished, &task.id, format!("lost on {trigger}"));
                    }
                }
            }
        }
    }

    fn settled(&mut self, task: &Task) {
        if table::is_in_flight(&task.status) {
            self.found(Violation::LeftInFlight, &task.id, format!("it is {}", task.status));
        }
    }

    fn earned(&mut self, task: &Task) {
        let said = |mark: &Mark| mark.what == Moment::Success && mark.task == task.id;
        if task.status == "succeeded" && !self.history.marks.iter().any(said) {
            self.found(Violation::SuccessUnearned, &task.id, "no body came to its end".into());
        }
    }

    fn bodies(&mut self, tasks: &BTreeMap<&str, &Task>) {
        let mut begun: BTreeMap<(&str, u32), Micros> = BTreeMap::new();
        let mut latest: BTreeMap<&str, &Mark> = BTreeMap::new();
        for mark in &self.history.marks {
            if !matches!(mark.what, Moment::Begin | Moment::BeginBeside) {
                continue;
            }
            let (id, attempt) = (mark.task.as_str(), mark.attempt);
            self.began(mark, tasks.get(id).copied());
            // One of the two could not be written, or the other would have been another attempt.
            if let Some(before) = begun.insert((id, attempt), mark.at)
                && !self.is_in_outage(before)
                && !self.is_in_outage(mark.at)
            {
                let detail = format!("attempt {attempt} began at {before} and at {}", mark.at);
                self.found(Violation::AttemptTwice, id, detail);
            }
            let earlier = latest.insert(id, mark);
            if mark.what == Moment::BeginBeside
                && !earlier.is_some_and(|earlier| self.may_overlap(earlier, mark))
            {
                let detail = match earlier {
                    Some(e) => format!(
                        "attempt {attempt} of supervisor {} began at {} beside attempt {} of supervisor {}",
                        mark.supervisor, mark.at, e.attempt, e.supervisor
                    ),
                    None => format!("attempt {attempt} began beside something unknown"),
                };
                self.found(Violation::Overlap, id, detail);
            }
        }
    }

    /// Its start stands in the trail, unless the store could not be written then and the start was lost
    /// with its holder; and nothing begins once the task has ended.
    fn began(&mut self, mark: &Mark, task: Option<&Task>) {
        let rows = task.map_or(&[][..], |task| &task.rows);
        let starts = rows.iter().filter(|row| row.to == "starting").count();
        if (starts as u64) < u64::from(mark.attempt) && !self.is_unwritten(mark, task) {
            let detail = format!(
                "attempt {} began at {} under supervisor {}, and the store has {starts} starts",
                mark.attempt, mark.at, mark.supervisor
            );
            self.found(Violation::NeverStarted, &mark.task, detail);
        }
        let end = rows.iter().find(|row| table::is_terminal(&row.to));
        if let Some(end) = end.filter(|end| mark.at > end.at + SLACK)
            && !self.is_in_outage(mark.at)
            && !self.was_handed_over(mark, rows)
        {
            let detail = format!(
                "attempt {} of supervisor {} began at {}, and it was {} at {}",
                mark.attempt, mark.supervisor, mark.at, end.to, end.at
            );
            self.found(Violation::BeganAfterEnd, &mark.task, detail);
        }
    }

    /// The one exception: the earlier attempt's holder was cut off from the store while another supervisor
    /// took the task over.
    fn may_overlap(&self, earlier: &Mark, later: &Mark) -> bool {
        let holder = self.history.supervisors.iter().find(|s| s.number == earlier.supervisor);
        let since = Span { from: earlier.at.min(later.at), to: later.at };
        earlier.supervisor != later.supervisor
            && holder.is_some_and(|holder| self.was_cut_off(holder, since))
    }

    /// Was its process frozen between the start in the trail, a moment before, and the body's first step, at
    /// which it woke? A body on a thread cannot write its mark while it is frozen.
    fn was_handed_over(&self, mark: &Mark, rows: &[Row]) -> bool {
        let start = rows.iter().rfind(|row| row.to == "starting").map_or(Micros::MIN, |row| row.at);
        let supervisor = self.history.supervisors.iter().find(|s| s.number == mark.supervisor);
        supervisor.into_iter().flat_map(|s| &s.frozen).any(|span| {
            let hit = span.from - 2 * SLACK <= start && start <= span.from + SLACK;
            hit && span.to - SLACK <= mark.at && mark.at <= span.to + WAKING
        })
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
            if status != "succeeded" && !self.is_in_outage(supervisor.life.to) {
                let detail = format!("supervisor {} said so, it is {status}", supervisor.number);
                self.found(Violation::PromiseBroken, id, detail);
            }
        }
    }

    /// The supervisor that held the task last, as of this time.
    fn holder(&self, task: &Task, at: Micros) -> Option<&Supervisor> {
        let incarnation = task.supervisor.as_ref()?;
        let (_, pid) = self.history.nodes.iter().find(|(known, _)| known == incarnation)?;
        let of_pid = self.history.supervisors.iter().filter(|s| s.pid == *pid);
        of_pid.filter(|s| s.life.from <= at).max_by_key(|s| s.life.from)
    }

    fn was_cut_off(&self, supervisor: &Supervisor, during: Span) -> bool {
        let meets = |span: &Span, after| Span { to: span.to + after, ..*span }.meets(during);
        supervisor.frozen.iter().any(|span| meets(span, WAKING))
            || self.history.outages.iter().any(|span| meets(span, self.history.lease))
    }

    /// Could the store not be written when this body began, and nobody write it later: because the
    /// supervisor ended before the store was back, had been declared dead by then, or had begun under an id
    /// that, as it turned out, was another's?
    fn is_unwritten(&self, mark: &Mark, task: Option<&Task>) -> bool {
        let rows = task.map_or(&[][..], |task| &task.rows);
        let holder = task.and_then(|task| self.holder(task, Micros::MAX));
        let supervisor = self.history.supervisors.iter().find(|s| s.number == mark.supervisor);
        let ended = supervisor.is_some_and(|s| self.is_in_outage(s.life.to));
        let taken = rows.iter().any(|row| row.trigger.starts_with("recovery:") && row.at > mark.at);
        let is_anothers = holder.is_some_and(|holder| holder.number != mark.supervisor);
        self.is_in_outage(mark.at) && (ended || taken || is_anothers)
    }

    fn is_in_outage(&self, at: Micros) -> bool {
        self.history.outages.iter().any(|span| span.from - SLACK <= at && at <= span.to + RECOVERY)
    }
}
