//! What bodies did, against what the store says of them.

use std::collections::BTreeMap;

use super::excuses::SLACK;
use super::{Checker, Violation, table};
use crate::history::{Mark, Moment, Task};

impl Checker<'_> {
    pub(super) fn bodies(&mut self, tasks: &BTreeMap<&str, &Task>) {
        let mut begun: BTreeMap<(&str, u32), &Mark> = BTreeMap::new();
        let mut latest: BTreeMap<&str, &Mark> = BTreeMap::new();
        for mark in &self.history.marks {
            if !mark.is_begin() {
                continue;
            }
            let (id, attempt) = (mark.task.as_str(), mark.attempt);
            let task = tasks.get(id).copied();
            self.began(mark, task);
            // One of the two could not be written, or the other would have been another attempt.
            if let Some(before) = begun.insert((id, attempt), mark)
                && ![before, mark].into_iter().any(|mark| self.history.is_unwritten(mark, task))
            {
                let detail =
                    format!("attempt {attempt} began at {} and at {}", before.began, mark.began);
                self.found(Violation::AttemptTwice, id, detail);
            }
            let earlier = latest.insert(id, mark);
            if mark.what == Moment::BeginBeside
                && !earlier.is_some_and(|earlier| self.history.may_overlap(earlier, mark, task))
            {
                let detail = match earlier {
                    Some(e) => format!(
                        "attempt {attempt} of supervisor {} began at {} beside attempt {} of supervisor {}",
                        mark.supervisor, mark.began, e.attempt, e.supervisor
                    ),
                    None => format!("attempt {attempt} began beside something unknown"),
                };
                self.found(Violation::Overlap, id, detail);
            }
        }
    }

    /// Its start stands in the trail, and nothing begins once the task has ended.
    fn began(&mut self, mark: &Mark, task: Option<&Task>) {
        let rows = task.map_or(&[][..], |task| &task.rows);
        let starts = rows.iter().filter(|row| row.to == "starting").count();
        if (starts as u64) < u64::from(mark.attempt) && !self.history.is_unwritten(mark, task) {
            let detail = format!(
                "attempt {} began at {} under supervisor {}, and the store has {starts} starts",
                mark.attempt, mark.began, mark.supervisor
            );
            self.found(Violation::NeverStarted, &mark.task, detail);
        }
        let end = rows.iter().find(|row| table::is_terminal(&row.to));
        if let Some(end) = end.filter(|end| mark.began > end.at + SLACK)
            && !self.history.stood_still_at_its_first_step(mark, end.at)
            && !self.history.could_not_know(mark, end.at)
            && !self.history.had_just_come(mark, task)
        {
            let detail = format!(
                "attempt {} of supervisor {} began at {}, and it was {} at {}",
                mark.attempt, mark.supervisor, mark.began, end.to, end.at
            );
            self.found(Violation::BeganAfterEnd, &mark.task, detail);
        }
    }
}
