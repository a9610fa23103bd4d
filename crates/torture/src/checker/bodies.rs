//! What bodies did, against what the store says of them.

use std::collections::BTreeMap;

use super::excuses::SLACK;
use super::{Checker, Violation, table};
use crate::history::{Mark, Moment, Task};

impl Checker<'_> {
    pub(super) fn bodies(&mut self, tasks: &BTreeMap<&str, &Task>) {
        let mut begun: BTreeMap<(&str, u32), &Mark> = BTreeMap::new();
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
            if mark.what == Moment::BeginBeside {
                self.overlaps(mark, task);
            }
        }
    }

    /// It began beside another. All that were there must be explained, and there must be one: what a dead holder,
    /// or a body that had ended, left behind should be gone.
    fn overlaps(&mut self, mark: &Mark, task: Option<&Task>) {
        let all: Vec<&Mark> = self.marks_of(&mark.task).collect();
        let has_ended = |begin: &Mark| {
            let is_its_end =
                |m: &&&Mark| !m.is_begin() && m.began == begin.began && m.at <= mark.at;
            all.iter().filter(is_its_end).any(|end| end.supervisor == begin.supervisor)
        };
        let is_there = |begin: &&Mark| {
            let lives = self.history.supervisor_of(begin).is_some_and(|s| mark.began < s.life.to);
            begin.is_begin() && begin.at < mark.at && lives && !has_ended(begin)
        };
        let there: Vec<&Mark> = all.iter().copied().filter(is_there).collect();
        let is_explained = |begin: &&Mark| self.history.may_overlap(begin, mark, task);
        if there.is_empty() || !there.iter().all(is_explained) {
            let beside: Vec<_> = there.iter().map(|m| (m.attempt, m.supervisor)).collect();
            let detail = format!(
                "attempt {} of supervisor {} began at {} beside (attempt, supervisor) {beside:?}",
                mark.attempt, mark.supervisor, mark.began
            );
            self.found(Violation::Overlap, &mark.task, detail);
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
