//! The deciding part: events and a clock reading in, [`Action`]s out (spec 2, 6, 8).
//!
//! Knows no thread, store, executor or clock, so its tests run ten thousand histories without sleeping.
//! One file for each kind of event: submissions here, what carriers report in `reports`, what people ask
//! for in `requests`, what time brings in `timers`.

mod action;
mod admission;
mod explain;
mod reports;
mod requests;
mod siblings;
mod slab;
mod task;
#[cfg(test)]
mod tests;
mod timers;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, hash_map};
use std::sync::Arc;
use std::time::Duration;

pub use action::{Action, EndCause, Entrance, Finished, Policy, Refused, Reply, Request, Ticket};
pub use admission::Limits;
pub use explain::Explanation;
pub use siblings::Siblings;
pub use slab::{KeyHasher, TaskKey};

use admission::{Admission, LaneId};
use slab::Slab;
use task::{Carried, Carrier, Phase, RunTime, Task};

use crate::id::{IdHashes, TaskId};
use crate::machine;
use crate::snapshot::{Progress, TaskSnapshot};
use crate::status::Status;
use crate::text::Text;
use crate::time::{Moment, Timestamp};
use crate::transition::Trigger;

/// A task that is handed in.
#[derive(Debug)]
pub struct Submission<P> {
    /// Its state: `pending` at version 0, or the stored state of a task to adopt.
    pub snapshot: Arc<TaskSnapshot>,
    /// What it is held to.
    pub policy: Arc<Policy>,
    /// How it starts.
    pub entrance: Entrance,
    /// The others that it is tied to.
    pub siblings: Option<Siblings>,
    /// Comes back in [`Finished`]; read by [`Scheduler::payload`].
    pub payload: P,
}

/// All unfinished tasks of one controller. `P` is what the controller keeps with each.
pub struct Scheduler<P> {
    tasks: Slab<Task<P>>,
    ids: HashMap<TaskId, TaskKey, IdHashes>,
    admission: Admission,
    timers: BTreeSet<(Duration, TaskKey)>,
    entries: u64,
    chance: u64,
}

impl<P> Scheduler<P> {
    /// An empty scheduler; `seed` feeds the jitter of back-offs.
    #[must_use]
    pub fn new(limits: &Limits, seed: u64) -> Self {
        Self {
            tasks: Slab::default(),
            ids: HashMap::default(),
            admission: Admission::new(limits),
            timers: BTreeSet::new(),
            entries: 0,
            chance: seed | 1,
        }
    }

    /// Takes a task in. Follow with [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// Gives the submission back when a task with this id is here.
    pub fn submit(
        &mut self,
        submission: Submission<P>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> Result<TaskKey, Box<Submission<P>>> {
        let hash_map::Entry::Vacant(place) = self.ids.entry(submission.snapshot.id.clone()) else {
            return Err(Box::new(submission));
        };
        let Submission { snapshot, policy, entrance, siblings, payload } = submission;
        let settled = snapshot.status_version();
        let key = self.tasks.insert(Task {
            snapshot,
            policy,
            payload,
            siblings,
            phase: Phase::Idle,
            start_by: None,
            settled,
            replies: Vec::new(),
            due: None,
            disowned: false,
        });
        place.insert(key);
        match entrance {
            Entrance::Queued => {
                self.enqueue(key, Trigger::DependenciesResolved, now, out);
            }
            Entrance::Blocked => {
                self.step(key, Status::Blocked, Trigger::WaitingForUpstream, None, now.wall, out);
            }
            Entrance::Adopted => {
                self.enqueue(key, Trigger::Adopted, now, out);
            }
        }
        Ok(key)
    }

    /// The upstream of a blocked task is ready. Follow with [`dispatch`](Self::dispatch).
    pub fn release(&mut self, key: TaskKey, now: Moment, out: &mut Vec<Action<P>>) -> bool {
        let is_blocked = self.status(key) == Some(Status::Blocked);
        is_blocked && self.enqueue(key, Trigger::DependenciesResolved, now, out)
    }

    /// The upstream of a task can no longer satisfy it.
    pub fn skip(
        &mut self,
        key: TaskKey,
        reason: Option<Text>,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> bool {
        let skipped =
            self.step(key, Status::Skipped, Trigger::UpstreamUnsatisfied, reason, now.wall, out);
        if skipped {
            self.ended(key, out);
        }
        skipped
    }

    /// Gives free slots to the best waiting tasks.
    pub fn dispatch(&mut self, now: Moment, out: &mut Vec<Action<P>>) {
        while let Some((key, lane)) = self.admission.take() {
            let siblings = self.tasks.get(key).and_then(|task| task.siblings.as_ref());
            if siblings.is_some_and(|siblings| !siblings.may_start()) {
                self.put_aside(key, lane);
                continue;
            }
            self.step(key, Status::Starting, Trigger::Dispatch, None, now.wall, out);
            let Some(task) = self.tasks.get_mut(key) else { continue };
            task.start_by = None;
            let carrier = Carrier::AwaitsWrite(task.snapshot.status_version());
            task.phase = Phase::Carried(Box::new(Carried {
                lane,
                carrier,
                run_time: RunTime::started(now.mono),
                active_at: Duration::ZERO,
                pauses: 0,
                pause: None,
                stop: None,
            }));
            self.rearm(key);
        }
    }

    /// Takes a queued task out of the running: somebody is about to end it.
    fn put_aside(&mut self, key: TaskKey, lane: LaneId) {
        self.admission.release(lane);
        if let Some(task) = self.tasks.get_mut(key) {
            task.phase = Phase::Idle;
        }
        self.rearm(key);
    }

    /// A task's state up to this version is written, or recorded as not written.
    pub fn settled(&mut self, key: TaskKey, version: u64, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        task.settled = task.settled.max(version);
        let settled = task.settled;
        task.replies.retain(|(at, ticket, reply)| {
            let waits = *at > settled;
            if !waits {
                out.push(Action::Reply(*ticket, *reply));
            }
            waits
        });
        if let Some(carried) = task.carried_mut()
            && let Carrier::AwaitsWrite(at) = carried.carrier
            && settled >= at
        {
            carried.carrier = Carrier::Up;
            carried.active_at = carried.run_time.at(now.mono);
            out.push(Action::Launch(key));
            self.rearm(key);
        }
        self.forget_if_done(key, out);
    }

    /// Somebody else writes this task (it was declared lost, or adopted): write nothing more, and stop
    /// what runs.
    pub fn disown(&mut self, key: TaskKey, reason: Text, now: Moment, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        task.disowned = true;
        // Already refused requests are of no interest here: the task may have ended.
        let _ = self.request(key, Request::End(EndCause::Shutdown), Some(reason), None, now, out);
        let version = self.tasks.get(key).map_or(0, |task| task.snapshot.status_version());
        self.settled(key, version, now, out);
    }

    /// Is this the current attempt of a task that nobody else writes?
    #[must_use]
    pub fn is_ours(&self, key: TaskKey, attempt: u32) -> bool {
        self.tasks.get(key).is_some_and(|task| !task.disowned && task.snapshot.attempt == attempt)
    }

    /// Takes a task back that was never accepted, as if it had not been submitted. Follow with
    /// [`dispatch`](Self::dispatch).
    pub fn withdraw(&mut self, key: TaskKey) -> Option<(Arc<TaskSnapshot>, P)> {
        self.leave(key);
        let task = self.tasks.remove(key)?;
        if let Some(due) = task.due {
            self.timers.remove(&(due, key));
        }
        self.ids.remove(&task.snapshot.id);
        Some((task.snapshot, task.payload))
    }

    /// The key of a task that is here.
    #[must_use]
    pub fn key(&self, id: &TaskId) -> Option<TaskKey> {
        self.ids.get(id).copied()
    }

    /// The state of a task that is here.
    #[must_use]
    pub fn snapshot(&self, key: TaskKey) -> Option<&Arc<TaskSnapshot>> {
        self.tasks.get(key).map(|task| &task.snapshot)
    }

    /// What was handed in with a task that is here.
    #[must_use]
    pub fn payload(&self, key: TaskKey) -> Option<&P> {
        self.tasks.get(key).map(|task| &task.payload)
    }

    /// The same, to change.
    pub fn payload_mut(&mut self, key: TaskKey) -> Option<&mut P> {
        self.tasks.get_mut(key).map(|task| &mut task.payload)
    }

    /// Keys of all tasks that are here.
    pub fn keys(&self) -> impl Iterator<Item = TaskKey> {
        self.tasks.iter().map(|(key, _)| key)
    }

    /// How many tasks are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Is none here?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Remembers progress, for the side channel.
    pub fn progress(&mut self, key: TaskKey, progress: Progress, out: &mut Vec<Action<P>>) {
        let Some(task) = self.tasks.get_mut(key).filter(|task| task.snapshot.status().holds_slot())
        else {
            return;
        };
        task.state_mut().progress = Some(Box::new(progress));
        out.push(Action::Touch(key));
    }

    fn status(&self, key: TaskKey) -> Option<Status> {
        self.snapshot(key).map(|task| task.status())
    }

    /// Moves a task by the table and has it recorded; `false` when the table forbids it.
    fn step(
        &mut self,
        key: TaskKey,
        to: Status,
        trigger: Trigger,
        reason: Option<Text>,
        at: Timestamp,
        out: &mut Vec<Action<P>>,
    ) -> bool {
        let Some(task) = self.tasks.get_mut(key) else { return false };
        let Ok(transition) = machine::apply(task.state_mut(), to, trigger, at, reason) else {
            return false;
        };
        if task.disowned {
            task.settled = task.snapshot.status_version();
        } else {
            out.push(Action::Record { key, transition });
        }
        true
    }

    /// Into `queued`, and into its lane.
    fn enqueue(
        &mut self,
        key: TaskKey,
        trigger: Trigger,
        now: Moment,
        out: &mut Vec<Action<P>>,
    ) -> bool {
        if !self.step(key, Status::Queued, trigger, None, now.wall, out) {
            return false;
        }
        let Some(task) = self.tasks.get_mut(key) else { return false };
        if task.snapshot.attempt == 0 && task.start_by.is_none() {
            task.start_by = task.policy.timeout.start.and_then(|limit| now.mono.checked_add(limit));
        }
        self.entries += 1;
        let rank = (Reverse(task.snapshot.priority), self.entries);
        let lane = self.admission.lane(task.snapshot.bucket, &task.snapshot.tags);
        task.phase = Phase::Queued { lane, rank };
        self.admission.enqueue(lane, rank, key);
        self.rearm(key);
        true
    }

    /// Takes a task off its lane or its slot; what is left is `Idle`.
    fn leave(&mut self, key: TaskKey) -> Option<Box<Carried>> {
        let task = self.tasks.get_mut(key)?;
        let left = std::mem::replace(&mut task.phase, Phase::Idle);
        self.rearm(key);
        match left {
            Phase::Idle | Phase::RetryWait { .. } => None,
            Phase::Queued { lane, rank } => {
                self.admission.remove(lane, rank);
                None
            }
            Phase::Carried(carried) => {
                self.admission.release(carried.lane);
                Some(carried)
            }
        }
    }

    /// After the step into a terminal state: frees what it held, and forgets it once that is settled.
    fn ended(&mut self, key: TaskKey, out: &mut Vec<Action<P>>) {
        let carried = self.leave(key);
        if let Some(task) = self.tasks.get_mut(key) {
            let (version, status) = (task.snapshot.status_version(), task.snapshot.status());
            if let Some(siblings) = &task.siblings {
                siblings.ended(status);
            }
            for ticket in carried.and_then(|c| c.pause).into_iter().flat_map(|pause| pause.tickets)
            {
                task.replies.push((version, ticket, Reply::Ended(status)));
            }
        }
        self.forget_if_done(key, out);
    }

    fn forget_if_done(&mut self, key: TaskKey, out: &mut Vec<Action<P>>) {
        let is_done = self.tasks.get(key).is_some_and(|task| {
            task.snapshot.status().is_terminal() && task.settled >= task.snapshot.status_version()
        });
        if !is_done {
            return;
        }
        if let Some(task) = self.tasks.remove(key) {
            self.ids.remove(&task.snapshot.id);
            out.extend(
                task.replies.into_iter().map(|(_, ticket, reply)| Action::Reply(ticket, reply)),
            );
            out.push(Action::Finished(Box::new(Finished {
                key,
                snapshot: task.snapshot,
                payload: task.payload,
                disowned: task.disowned,
            })));
        }
    }

    /// A number in 0..1 (xorshift64*).
    fn draw(&mut self) -> f64 {
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        (self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}
