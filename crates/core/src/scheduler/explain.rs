//! Why a task is where it is: the exact limit, and who occupies it (spec 8).

use std::fmt;
use std::time::Duration;

use crate::id::TaskId;
use crate::scheduler::Scheduler;
use crate::scheduler::admission::What;
use crate::scheduler::slab::TaskKey;
use crate::scheduler::task::{Carrier, Phase};
use crate::status::Status;
use crate::text::Text;

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// All slots are taken.
    Slots {
        /// How many there are.
        max_parallel: usize,
        /// Who has them.
        occupants: Vec<TaskId>,
    },
    /// Its bucket has all the slots that it may have.
    Bucket {
        /// The bucket.
        bucket: u32,
        /// How many it may have.
        limit: usize,
        /// Who has them.
        occupants: Vec<TaskId>,
    },
    /// No permit of a resource is left.
    Resource {
        /// The resource.
        name: Text,
        /// How many permits there are.
        permits: usize,
        /// Who has them.
        occupants: Vec<TaskId>,
    },
    /// Its next attempt is not due yet.
    Retry {
        /// Time left.
        due_in: Duration,
    },
    /// Its upstream has not ended.
    Upstream {
        /// The tasks, where they are known.
        tasks: Vec<TaskId>,
    },
    /// Its `starting` is not written yet.
    Write,
    /// It is paused.
    Resume,
    /// One of its [siblings](crate::Siblings) has failed, and it has not been ended yet.
    Siblings,
    /// It waits for nothing.
    Nothing(Status),
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = |f: &mut fmt::Formatter<'_>, occupants: &[TaskId]| {
            occupants.iter().enumerate().try_for_each(|(i, id)| {
                write!(f, "{}{id}", if i == 0 { ", held by " } else { ", " })
            })
        };
        match self {
            Self::Slots { max_parallel, occupants } => {
                write!(f, "waits for a slot: all {max_parallel} (max_parallel) are in use")?;
                held(f, occupants)
            }
            Self::Bucket { bucket, limit, occupants } => {
                write!(
                    f,
                    "waits for bucket {bucket}: its {limit} (max_parallel_per_bucket) are in use"
                )?;
                held(f, occupants)
            }
            Self::Resource { name, permits, occupants } => {
                write!(f, "waits for resource {name:?}: its {permits} permits are in use")?;
                held(f, occupants)
            }
            Self::Retry { due_in } => {
                let millis = u64::try_from(due_in.as_millis()).unwrap_or(u64::MAX);
                write!(f, "waits for its next attempt, due in {:?}", Duration::from_millis(millis))
            }
            Self::Upstream { tasks } => {
                f.write_str("waits for its upstream")?;
                tasks.iter().take(MAX_OCCUPANTS).enumerate().try_for_each(|(i, id)| {
                    write!(f, "{}{id}", if i == 0 { ": " } else { ", " })
                })?;
                match tasks.len().saturating_sub(MAX_OCCUPANTS) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Write => f.write_str("waits until its start is written to the store"),
            Self::Resume => f.write_str("waits for a resume"),
            Self::Siblings => {
                f.write_str("waits for its end: a task that it is tied to has failed")
            }
            Self::Nothing(status) => write!(f, "waits for nothing: it is {status}"),
        }
    }
}

/// At most this many tasks are named.
const MAX_OCCUPANTS: usize = 20;

impl<P> Scheduler<P> {
    /// Says what a task waits for; `None` when it is not here.
    #[must_use]
    pub fn explain(&self, key: TaskKey, now: Duration) -> Option<Explanation> {
        let task = self.tasks.get(key)?;
        let status = task.snapshot.status();
        Some(match &task.phase {
            Phase::Idle if matches!(status, Status::Pending | Status::Blocked) => {
                Explanation::Upstream { tasks: Vec::new() }
            }
            Phase::Idle if status == Status::Queued => Explanation::Siblings,
            Phase::Idle => Explanation::Nothing(status),
            Phase::RetryWait { due } => Explanation::Retry { due_in: due.saturating_sub(now) },
            Phase::Carried(carried) => match carried.carrier {
                Carrier::AwaitsWrite(_) => Explanation::Write,
                Carrier::Up if status == Status::Paused => Explanation::Resume,
                Carrier::Up => Explanation::Nothing(status),
            },
            Phase::Queued { lane, .. } => match self.admission.obstacles(*lane).next() {
                Some((what @ What::Bucket(bucket), limit)) => Explanation::Bucket {
                    bucket: *bucket,
                    limit,
                    occupants: self.occupants(Some(what)),
                },
                Some((what @ What::Resource(name), permits)) => Explanation::Resource {
                    name: name.clone(),
                    permits,
                    occupants: self.occupants(Some(what)),
                },
                None => {
                    let (_, max_parallel) = self.admission.slots();
                    Explanation::Slots { max_parallel, occupants: self.occupants(None) }
                }
            },
        })
    }

    fn occupants(&self, under: Option<&What>) -> Vec<TaskId> {
        let counts = |lane| under.is_none_or(|what| self.admission.is_under(lane, what));
        let tasks = self.tasks.iter().map(|(_, task)| task);
        let holders = tasks.filter(|task| task.carried().is_some_and(|c| counts(c.lane)));
        holders.map(|task| task.snapshot.id.clone()).take(MAX_OCCUPANTS).collect()
    }
}
