//! The one function that changes a status (spec 1). Running, recovery and direct stops all use it.

use crate::snapshot::TaskSnapshot;
use crate::status::Status;
use crate::text::Text;
use crate::time::Timestamp;
use crate::transition::{IllegalTransition, Transition, Trigger, is_legal};

/// Moves the task to `to` and returns the audit row: version + 1 and the timestamps that the move implies.
///
/// # Errors
/// [`IllegalTransition`] when the table does not have the move; the task is unchanged.
pub fn apply(
    task: &mut TaskSnapshot,
    to: Status,
    trigger: Trigger,
    at: Timestamp,
    reason: Option<Text>,
) -> Result<Transition, IllegalTransition> {
    let from = task.status;
    if !is_legal(from, to, trigger) {
        return Err(IllegalTransition { from, to, trigger });
    }
    task.status = to;
    task.status_version += 1;
    task.updated_at = at;
    match to {
        Status::Queued => task.queued_at = Some(at),
        Status::Starting => {
            task.attempt += 1;
            task.attempt_started_at = Some(at);
        }
        Status::Running => {
            task.started_at.get_or_insert(at);
        }
        Status::Succeeded
        | Status::Failed
        | Status::Stopped
        | Status::Cancelled
        | Status::Skipped
        | Status::Lost => task.ended_at = Some(at),
        Status::Pending
        | Status::Blocked
        | Status::RetryWait
        | Status::Pausing
        | Status::Paused
        | Status::Stopping => {}
    }
    let (task_id, version) = (task.id.clone(), task.status_version);
    Ok(Transition { task_id, version, from, to, at, trigger, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;
    use crate::transition::triggers_between;

    fn task(status: Status) -> TaskSnapshot {
        let at = Timestamp::from_micros(0);
        TaskSnapshot::pending(TaskId::new("t").unwrap(), "t", "me".into(), at).restored(status, 7)
    }

    #[test]
    fn all_pairs_and_triggers() {
        let at = Timestamp::from_micros(5);
        for from in Status::ALL {
            for to in Status::ALL {
                let legal: Vec<_> = triggers_between(from, to).collect();
                for &trigger in Trigger::ALL {
                    let mut task = task(from);
                    let before = task.clone();
                    match apply(&mut task, to, trigger, at, None) {
                        Ok(row) => {
                            assert!(legal.contains(&trigger), "{from} → {to} by {trigger}");
                            assert_eq!((row.from, row.to, row.version), (from, to, 8));
                            assert_eq!((task.status(), task.status_version()), (to, 8));
                            assert_eq!(task.updated_at, at);
                            assert_eq!(task.ended_at.is_some(), to.is_terminal());
                        }
                        Err(refused) => {
                            assert!(!legal.contains(&trigger), "{from} → {to} by {trigger}");
                            assert_eq!(refused, IllegalTransition { from, to, trigger });
                            assert_eq!(task, before);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn attempts_count_dispatches_and_the_first_run_is_kept() {
        let mut task = task(Status::Pending);
        let steps = [
            (Status::Queued, Trigger::DependenciesResolved),
            (Status::Starting, Trigger::Dispatch),
            (Status::Running, Trigger::Launched),
            (Status::RetryWait, Trigger::Failed),
            (Status::Queued, Trigger::RetryDue),
            (Status::Starting, Trigger::Dispatch),
            (Status::Running, Trigger::Launched),
        ];
        for (i, (to, trigger)) in (1..).zip(steps) {
            apply(&mut task, to, trigger, Timestamp::from_micros(i), None).unwrap();
        }
        assert_eq!(task.attempt, 2);
        assert_eq!(task.started_at, Some(Timestamp::from_micros(3)));
        assert_eq!(task.attempt_started_at, Some(Timestamp::from_micros(6)));
        assert_eq!(task.queued_at, Some(Timestamp::from_micros(5)));
    }
}
