use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::machine;
use crate::scheduler::{Entrance, Limits, Policy, Scheduler, Submission};
use crate::store::Entry;
use crate::time::Moment;
use crate::transition::Trigger;

const PATIENCE: Duration = Duration::from_secs(5);

/// A journal, and the tasks that it is about as a scheduler would have them.
struct Desk {
    journal: Journal,
    tasks: Vec<(TaskKey, Arc<TaskSnapshot>)>,
    scheduler: Scheduler<()>,
    /// Rows that a write took along which has not been answered.
    under_way: usize,
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn wall() -> Timestamp {
    Timestamp::from_micros(0)
}

impl Desk {
    fn new(max_rows: usize) -> Self {
        Self {
            journal: Journal::new(PATIENCE, max_rows),
            tasks: Vec::new(),
            scheduler: Scheduler::new(&Limits::default(), 1),
            under_way: 0,
        }
    }

    /// Two tasks whose start is stored.
    fn two_that_start(&mut self) -> [usize; 2] {
        let tasks = ["a", "b"].map(|id| {
            let task = self.open(id);
            self.queue(task);
            self.start(task);
            task
        });
        let batch = self.take(at(0));
        self.answered(&batch, [Verdict::Stored, Verdict::Stored]);
        tasks
    }

    /// A task of which nothing is recorded yet; keys come from a scheduler, which has no other part here.
    fn open(&mut self, id: &str) -> usize {
        let id = TaskId::new(id).unwrap();
        let task = TaskSnapshot::pending(id.clone(), "t", "owner".into(), wall());
        let submission = Submission {
            snapshot: task.clone().into(),
            policy: Arc::new(Policy {
                retry: crate::RetryPolicy::default(),
                timeout: crate::Timeout::default(),
                grace: Duration::ZERO,
                hard_stop: false,
            }),
            entrance: Entrance::Blocked,
            siblings: None,
            payload: (),
        };
        let now = Moment { wall: wall(), mono: Duration::ZERO };
        let key = self.scheduler.submit(submission, now, &mut Vec::new()).unwrap();
        self.journal.open(key, id, None);
        self.tasks.push((key, Arc::new(task)));
        self.tasks.len() - 1
    }

    fn step(&mut self, task: usize, to: Status, trigger: Trigger) {
        let (key, state) = &mut self.tasks[task];
        let row = machine::apply(Arc::make_mut(state), to, trigger, wall(), None).unwrap();
        self.journal.record(*key, row, wall());
    }

    fn queue(&mut self, task: usize) {
        self.step(task, Status::Queued, Trigger::DependenciesResolved);
    }

    fn start(&mut self, task: usize) {
        self.step(task, Status::Starting, Trigger::Dispatch);
    }

    fn take(&mut self, now: Duration) -> Batch {
        let tasks = &self.tasks;
        let batch =
            self.journal.take(now, |key| tasks.iter().find(|(k, _)| *k == key).map(|(_, s)| s));
        self.under_way = batch.parts.iter().map(|part| part.rows).sum();
        self.count();
        batch
    }

    fn answered<const N: usize>(&mut self, batch: &Batch, verdicts: [Verdict; N]) -> Vec<Outcome> {
        let answers = batch.parts.iter().copied().zip(verdicts).collect();
        let outcomes = self.journal.answered(answers);
        self.under_way = 0;
        self.count();
        outcomes
    }

    fn failed(&mut self, batch: Batch, error: &str, now: Duration) -> Vec<Outcome> {
        let outcomes = self.journal.failed(batch, error, now, wall());
        self.under_way = 0;
        self.count();
        outcomes
    }

    /// What the buffer is held to is what it holds.
    fn count(&self) {
        let waiting: usize = self.journal.pending.values().map(|p| p.rows.len()).sum();
        assert_eq!(self.journal.rows, waiting + self.under_way);
    }

    fn key(&self, task: usize) -> TaskKey {
        self.tasks[task].0
    }
}

/// Stored version that is expected (`None` for a creation), and the versions of the rows.
fn shape(entry: &Entry) -> (Option<u64>, Vec<u64>) {
    let versions = |rows: &[Transition]| rows.iter().map(|row| row.version).collect();
    match entry {
        Entry::Create { transitions, .. } => (None, versions(transitions)),
        Entry::Save { expect_version, transitions, .. } => {
            (Some(*expect_version), versions(transitions))
        }
        Entry::Touch(_) => panic!("a touch"),
    }
}

#[test]
fn a_launch_waits_for_company_until_it_is_hurried() {
    let mut desk = Desk::new(100);
    let [short, long] = desk.two_that_start();
    for task in [short, long] {
        desk.step(task, Status::Running, Trigger::Launched);
    }
    let until = Instant::now();
    desk.journal.be_patient(|| until);
    assert!(desk.journal.hurry_at() == Some(until) && !desk.journal.has_work(at(0)));
    assert!(!desk.journal.is_empty() && desk.journal.unwritten() == 2);
    // Its end brings the one along, and leaves the other alone.
    desk.step(short, Status::Succeeded, Trigger::Completed);
    let batch = desk.take(at(0));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(Some(2), vec![3, 4])]);
    desk.journal.hurry();
    desk.answered(&batch, [Verdict::Stored]);
    assert!(desk.journal.has_work(at(0)) && desk.journal.hurry_at().is_none());
    let batch = desk.take(at(0));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(Some(2), vec![3])]);
    desk.answered(&batch, [Verdict::Stored]);
    assert!(desk.journal.is_empty() && desk.journal.unwritten() == 0);
}

#[test]
fn a_launch_that_was_brought_along_hurries_nobody() {
    let mut desk = Desk::new(100);
    let [first, second] = desk.two_that_start();
    let now = Instant::now();
    let [sooner, later] = [now, now + Duration::from_millis(1)];
    for (task, until) in [(first, sooner), (second, later)] {
        desk.step(task, Status::Running, Trigger::Launched);
        desk.journal.be_patient(|| until);
    }
    desk.journal.be_patient(|| panic!("all have been told"));
    assert_eq!(desk.journal.hurry_at(), Some(sooner));
    desk.step(first, Status::Succeeded, Trigger::Completed);
    assert_eq!(desk.journal.hurry_at(), Some(later));
    desk.step(second, Status::Succeeded, Trigger::Completed);
    assert_eq!(desk.journal.hurry_at(), None);
    let batch = desk.take(at(0));
    desk.answered(&batch, [Verdict::Stored, Verdict::Stored]);
    assert!(desk.journal.is_empty());
}

#[test]
fn what_waits_of_one_task_becomes_one_entry_with_all_rows() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.queue(task);
    desk.start(task);
    let batch = desk.take(at(0));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(None, vec![1, 2])]);
    // What comes during the write waits for it, and then goes on top of what was stored.
    desk.step(task, Status::Running, Trigger::Launched);
    assert!(!desk.journal.has_work(at(0)));
    let outcomes = desk.answered(&batch, [Verdict::Stored]);
    assert_eq!(outcomes, [Outcome::Stored(desk.key(task), 2)]);
    assert!(desk.journal.has_work(at(0)));
    let batch = desk.take(at(0));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(Some(2), vec![3])]);
    desk.answered(&batch, [Verdict::Stored]);
    assert!(desk.journal.is_empty() && desk.journal.unwritten() == 0);
}

#[test]
fn a_failed_write_is_recorded_and_goes_along_with_the_next() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.queue(task);
    let batch = desk.take(at(0));
    let outcomes = desk.failed(batch, "disk full", at(0));
    assert_eq!(outcomes, [Outcome::Recorded(desk.key(task), 1)]);
    let fault = desk.journal.faults.iter().next().unwrap();
    assert_eq!((&*fault.error, fault.version, fault.dropped), ("disk full", 1, false));
    // Not before the pause is over, and then with what came meanwhile.
    assert!(!desk.journal.has_work(at(0)));
    desk.start(task);
    assert_eq!(
        desk.journal.record_while_down(desk.key(task), wall()),
        Some(Outcome::Recorded(desk.key(task), 2))
    );
    assert!(desk.journal.has_work(at(1)));
    let batch = desk.take(at(1));
    assert!(batch.parts[0].uncertain);
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(None, vec![1, 2])]);
    desk.answered(&batch, [Verdict::Stored]);
    assert_eq!(desk.journal.record_while_down(desk.key(task), wall()), None);
}

#[test]
fn a_write_that_was_stored_after_all_leaves_only_the_rest() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.queue(task);
    let batch = desk.take(at(0));
    desk.failed(batch, "no answer", at(0));
    desk.start(task);
    let mut batch = desk.take(at(1));
    let later = batch.entries.remove(0).into_rows_after(1);
    let outcomes = desk.answered(&batch, [Verdict::StoredBefore(1, later)]);
    assert_eq!(outcomes, [Outcome::Stored(desk.key(task), 1)]);
    let batch = desk.take(at(1));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(Some(1), vec![2])]);
}

#[test]
fn a_store_that_does_not_answer_counts_as_down() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.queue(task);
    assert_eq!(desk.journal.stalls_at(), None);
    let batch = desk.take(at(1));
    assert_eq!(desk.journal.stalls_at(), Some(at(1) + PATIENCE));
    let outcomes = desk.journal.stalled(at(6), wall());
    assert_eq!(outcomes, [Outcome::Recorded(desk.key(task), 1)]);
    assert_eq!(desk.journal.stalls_at(), None);
    // It answers after all.
    let outcomes = desk.answered(&batch, [Verdict::Stored]);
    assert_eq!(outcomes, [Outcome::Stored(desk.key(task), 1)]);
}

#[test]
fn a_full_buffer_drops_the_oldest_and_says_so() {
    let mut desk = Desk::new(2);
    let task = desk.open("a");
    desk.queue(task);
    let batch = desk.take(at(0));
    desk.failed(batch, "down", at(0));
    desk.start(task);
    desk.step(task, Status::Running, Trigger::Launched);
    let dropped: Vec<_> = desk.journal.faults.iter().filter(|fault| fault.dropped).collect();
    assert_eq!(dropped.len(), 1);
    // The state itself is still written, with the rows that are left.
    let batch = desk.take(at(1));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(None, vec![3])]);
}

#[test]
fn what_is_forgotten_during_its_write_is_held_no_longer() {
    for stored in [true, false] {
        let mut desk = Desk::new(100);
        let task = desk.open("a");
        desk.queue(task);
        let batch = desk.take(at(0));
        desk.start(task);
        assert!(desk.journal.forget(desk.key(task)).is_some());
        desk.count();
        let outcomes = match stored {
            true => desk.answered(&batch, [Verdict::Stored]),
            false => desk.failed(batch, "down", at(0)),
        };
        assert_eq!((outcomes, desk.journal.rows), (Vec::new(), 0));
    }
}

#[test]
fn an_ended_task_is_written_and_forgotten() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.queue(task);
    let batch = desk.take(at(0));
    desk.failed(batch, "down", at(0));
    desk.step(task, Status::Stopped, Trigger::UserStop);
    // The scheduler has forgotten it: the journal keeps its last state.
    let (key, last) = desk.tasks.remove(task);
    desk.journal.leave(key, &last);
    assert_eq!(desk.journal.unwritten(), 1);
    let batch = desk.take(at(1));
    assert_eq!(batch.entries.iter().map(shape).collect::<Vec<_>>(), [(None, vec![1, 2])]);
    desk.answered(&batch, [Verdict::Stored]);
    assert_eq!(desk.journal.unwritten(), 0);
    assert!(!desk.journal.is_stored(key));
}

#[test]
fn touches_wait_for_company_and_follow_the_creation() {
    let mut desk = Desk::new(100);
    let task = desk.open("a");
    desk.journal.touch(desk.key(task), at(0));
    assert_eq!(desk.journal.work_at(), Some(TOUCH_DELAY));
    // Of a task that the store does not have there is nothing to touch.
    assert!(desk.take(TOUCH_DELAY).entries.is_empty());
    desk.queue(task);
    let batch = desk.take(at(1));
    desk.answered(&batch, [Verdict::Stored]);
    desk.journal.touch(desk.key(task), at(1));
    desk.journal.touch(desk.key(task), at(1));
    let batch = desk.take(at(2));
    assert!(matches!(batch.entries.as_slice(), [Entry::Touch(_)]));
}

#[test]
fn an_answer_is_expected_where_all_that_waits_was_just_told_something() {
    let mut desk = Desk::new(100);
    let [a, b] = ["a", "b"].map(|id| desk.open(id));
    assert!(!desk.journal.expects_answers(), "nothing waits");
    for task in [a, b] {
        desk.queue(task);
        desk.start(task);
        desk.step(task, Status::Running, Trigger::Launched);
    }
    desk.step(a, Status::Stopping, Trigger::UserStop);
    assert!(!desk.journal.expects_answers(), "b was told nothing");
    desk.step(b, Status::Pausing, Trigger::UserPause);
    assert!(desk.journal.expects_answers());
    desk.step(a, Status::Stopped, Trigger::StopConfirmed);
    assert!(!desk.journal.expects_answers(), "a has answered");
}
