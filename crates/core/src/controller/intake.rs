//! Taking tasks in (spec 8): what is checked before, how many go together, and when a submission takes an
//! existing task over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::controller::Controller;
use crate::controller::builder::check_num_buckets;
use crate::controller::guarded::{Core, Payload};
use crate::controller::handle::Completion;
use crate::controller::run::TaskRun;
use crate::controller::submit::{NotAdoptable, Submit, SubmitError, Work, adoptable};
use crate::id::TaskId;
use crate::scheduler::{Entrance, Submission, TaskKey};
use crate::snapshot::TaskSnapshot;
use crate::store::{FACT_NUM_BUCKETS, Now, Receipt, ReceiptKind, StoreError};
use crate::task::TaskDefinition;
use crate::time::Moment;

/// How many submissions are handed over under one lock: others want it too.
const SUBMIT_CHUNK: usize = 64;

/// What the checks of a submission found out.
pub(super) struct Inspected {
    definition: Arc<TaskDefinition>,
    bucket: Option<u32>,
}

/// A submission that passed every check that needs no lock.
struct Checked {
    id: TaskId,
    submission: Submission<Payload>,
    completion: Arc<Completion>,
    /// To take the task over with, should its id, which was given, be in the store.
    again: Option<Box<Submit>>,
}

/// A submission that the scheduler has, and the store not yet.
struct Taken {
    key: TaskKey,
    id: TaskId,
    completion: Arc<Completion>,
    again: Option<Box<Submit>>,
}

impl Controller {
    /// Takes a task in. On return it is in the store (or recorded as not written).
    ///
    /// An id that exists is an error, unless that task's holder is gone and nothing of it was running:
    /// then the submission takes it over.
    ///
    /// # Errors
    /// [`SubmitError`] says what does not fit; nothing was taken in.
    pub fn submit(&self, submit: Submit) -> Result<TaskRun, SubmitError> {
        let mut results = self.submit_many([submit]);
        results.pop().unwrap_or(Err(SubmitError::Closed))
    }

    /// Takes many tasks in, each by itself; one result for each, in order.
    pub fn submit_many(
        &self,
        submits: impl IntoIterator<Item = Submit>,
    ) -> Vec<Result<TaskRun, SubmitError>> {
        self.engine.become_node();
        let is_down = self.engine.lock().journal.is_down();
        let checked: Vec<_> = submits
            .into_iter()
            .map(|submit| {
                // A store that cannot be written may still say that the id is taken.
                let given = submit.id.as_ref().filter(|_| is_down);
                match given.filter(|id| matches!(self.engine.store.get(id), Ok(Some(_)))).cloned() {
                    Some(id) => Err(self.take_over(submit, id)),
                    None => {
                        let again = submit.id.is_some().then(|| Box::new(submit.clone()));
                        self.check(submit, again).map_err(Err)
                    }
                }
            })
            .collect();
        let mut checked = checked.into_iter();
        let mut taken = Vec::with_capacity(checked.len());
        while checked.len() > 0 {
            self.engine.with(|core, now| {
                let chunk = checked.by_ref().take(SUBMIT_CHUNK);
                taken.extend(chunk.map(|checked| Self::take(core, checked?, now).map_err(Err)));
            });
        }
        let finish = |taken: Result<Taken, _>| match taken {
            Ok(Taken { key, id, completion, again }) => match (completion.wait_accepted(), again) {
                (Ok(()), _) => Ok(TaskRun { controller: self.clone(), key, id, completion }),
                (Err(SubmitError::Exists { .. }), Some(again)) => self.take_over(*again, id),
                (Err(error), _) => Err(error),
            },
            Err(settled) => settled,
        };
        // They are written in order, so the last one is waited for first: one wake instead of many.
        if let Some(last) = taken.iter().flatten().next_back()
            && !last.completion.is_decided_within(self.engine.options.patience / 2)
        {
            self.look_for_others(&taken);
            let _ = last.completion.wait_accepted();
        }
        taken.into_iter().map(finish).collect()
    }

    /// A store that does not answer counts as down after a while, and then what it has not taken goes on all the
    /// same. But an id that was given may be somebody's, and where the store can be read, it says so.
    fn look_for_others(&self, taken: &[Result<Taken, Result<TaskRun, SubmitError>>]) {
        let engine = &self.engine;
        let given = taken.iter().flatten().filter(|taken| taken.again.is_some());
        for Taken { key, id, .. } in given.filter(|taken| !taken.completion.is_accepted()) {
            let Ok(stored) = engine.store.get(id) else { return };
            if stored.is_some_and(|task| task.supervisor.as_ref() != Some(engine.incarnation())) {
                engine.lock().journal.mark_taken(*key);
            }
        }
    }

    /// Hands a checked submission to the scheduler.
    fn take(core: &mut Core, checked: Checked, now: Moment) -> Result<Taken, SubmitError> {
        let Checked { id, submission, completion, again } = checked;
        if !core.is_open {
            return Err(SubmitError::Closed);
        }
        match core.scheduler.submit(submission, now, &mut core.out) {
            Ok(key) => {
                core.journal.open(key, id.clone(), None);
                Ok(Taken { key, id, completion, again })
            }
            Err(_) => Err(SubmitError::Exists { id, why: NotAdoptable::Ours }),
        }
    }

    /// Everything about a submission that can be checked without changing anything.
    pub(super) fn inspect(&self, submit: &Submit) -> Result<Inspected, SubmitError> {
        let engine = &*self.engine;
        let definition = {
            let registry = engine.registry.read().unwrap_or_else(PoisonError::into_inner);
            registry.get(&submit.name).cloned().ok_or_else(|| SubmitError::UnknownTask {
                name: submit.name.clone(),
                known: registry.iter().map(|known| Arc::clone(&known.name)).collect(),
            })?
        };
        engine.executor.check(&definition.target).map_err(SubmitError::Unsupported)?;
        submit.check()?;
        let args = submit.args.as_ref().map_err(|error| SubmitError::Args(error.clone()))?;
        args.check().map_err(SubmitError::Args)?;
        let bucket = engine.ownership.place(submit.bucket_key.as_deref())?;
        Ok(Inspected { definition, bucket })
    }

    /// Everything about a submission that can be checked without the lock.
    fn check(&self, submit: Submit, again: Option<Box<Submit>>) -> Result<Checked, SubmitError> {
        let engine = &*self.engine;
        let Inspected { definition, bucket } = self.inspect(&submit)?;
        if bucket.is_some() {
            self.pin_num_buckets()?;
        }
        let policy = engine.policy(&submit, &definition);
        let tags = submit.all_tags(&definition);
        let id = submit.id.unwrap_or_else(|| engine.ids.task());
        let at = engine.clock.wall();
        let (name, owner) = (Arc::clone(&definition.name), engine.node.owner.clone());
        let mut snapshot = TaskSnapshot::pending(id.clone(), name, owner, at);
        snapshot.max_attempts = policy.retry.max_attempts.get();
        snapshot.label = submit.label;
        snapshot.bucket = bucket;
        snapshot.bucket_key = submit.bucket_key;
        snapshot.tags = tags;
        snapshot.priority = submit.priority.unwrap_or(definition.defaults.priority);
        snapshot.supervisor = Some(engine.incarnation().clone());
        let completion = Arc::new(Completion::default());
        let work = Work {
            target: definition.target.clone(),
            args: Ok(submit.args.map_err(SubmitError::Args)?),
            upstream: submit.upstream,
            waits_for: submit.waits_for,
        };
        let payload = Payload::new(work, Arc::clone(&completion));
        let entrance = if submit.blocked { Entrance::Blocked } else { Entrance::Queued };
        let siblings = submit.siblings;
        let submission =
            Submission { snapshot: snapshot.into(), policy, entrance, siblings, payload };
        Ok(Checked { id, submission, completion, again })
    }

    /// The first bucketed submission records the store's bucket count (spec 3).
    fn pin_num_buckets(&self) -> Result<(), SubmitError> {
        let engine = &*self.engine;
        let ours = engine.ownership.num_buckets();
        if !engine.is_pinned.load(Ordering::Acquire) {
            let stored = engine.store.pin(FACT_NUM_BUCKETS, &ours.to_string())?;
            check_num_buckets(&stored, Some(ours))
                .map_err(|e| SubmitError::NumBuckets(Arc::new(e)))?;
            engine.is_pinned.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The id is in the store: takes the task over, if that is wanted and possible.
    fn take_over(&self, submit: Submit, id: TaskId) -> Result<TaskRun, SubmitError> {
        if submit.only_new {
            return Err(SubmitError::Exists { id, why: NotAdoptable::OnlyNew });
        }
        self.adopt(submit, id)
    }

    /// Takes the task over, if nobody holds it and nothing of it was running.
    fn adopt(&self, submit: Submit, id: TaskId) -> Result<TaskRun, SubmitError> {
        let refuse = |why| Err(SubmitError::Exists { id: id.clone(), why });
        let Checked { mut submission, completion, .. } =
            self.check(Submit { id: Some(id.clone()), ..submit }, None)?;
        let Some(stored) = self.engine.store.get(&id)? else { return refuse(NotAdoptable::Raced) };
        let holder_lives = self.client().has_live_holder(&stored)?;
        let fresh = Arc::unwrap_or_clone(submission.snapshot);
        if let Err(why) = adoptable(&stored, &fresh.name, fresh.bucket, holder_lives) {
            return refuse(why);
        }
        let version = stored.status_version();
        submission.snapshot = Arc::new(TaskSnapshot {
            label: fresh.label,
            max_attempts: fresh.max_attempts.max(stored.attempt + 1),
            tags: fresh.tags,
            priority: fresh.priority,
            owner: fresh.owner,
            supervisor: fresh.supervisor,
            lease_until: None,
            ..stored
        });
        submission.entrance = Entrance::Adopted;
        let key = self.engine.with(|core, now| {
            if !core.is_open {
                return Err(SubmitError::Closed);
            }
            let key = core
                .scheduler
                .submit(submission, now, &mut core.out)
                .map_err(|_| SubmitError::Exists { id: id.clone(), why: NotAdoptable::Ours })?;
            core.journal.open(key, id.clone(), Some(version));
            Ok(key)
        })?;
        completion.wait_accepted()?;
        self.supersede_commands(&id)?;
        Ok(TaskRun { controller: self.clone(), key, id, completion })
    }

    /// Commands to the former holder will never be claimed: their issuers are told.
    fn supersede_commands(&self, id: &TaskId) -> Result<(), StoreError> {
        let receipt = Receipt::new(ReceiptKind::Superseded, "superseded by adoption");
        let commands = self.engine.store.commands(id)?.into_iter();
        let open = commands.filter(|command| {
            command.receipt.is_none() && command.request.holder != *self.engine.incarnation()
        });
        for command in open {
            self.engine.store.complete_command(&command.request.id, &receipt, Now::Store)?;
        }
        Ok(())
    }
}
