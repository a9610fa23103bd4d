//! Carries out a run: submits its nodes, hears of their ends on one thread, and does what is decided.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use chongming_core::{
    Controller, NotAdoptable, Outcome, Release, Siblings, Status, SubmitError, TaskId, TaskRun,
    Text,
};

use crate::check::{Checked, task_id};
use crate::decide::{Action, Decider, Event};
use crate::join::{Aggregation, Join};
use crate::mistake::StartError;
use crate::outcome::{NodeOutcome, PipelineOutcome, PipelineStatus};
use crate::pipeline::{ArgsOf, Pipeline, make_args};
use crate::run::{PipelineRun, Shared};

/// What the run's thread waits for.
pub(crate) enum Happened {
    /// This node's task ended.
    Ended(usize),
    /// A person cancels, for this reason.
    Cancelled(Option<Text>),
}

/// The run's thread.
struct Runner {
    pipeline: Text,
    shared: Arc<Shared>,
    graph: Vec<(Join, Vec<usize>)>,
    args_of: Vec<Option<ArgsOf>>,
    ends: Vec<Option<Arc<Outcome>>>,
    reason: Option<Text>,
}

/// Refuses a run of which a node that would start at once exists: the others would have started by the time that its
/// submission is refused. Those that wait are submitted first, and need no question.
pub(crate) fn refuse_taken(
    pipeline: &Pipeline,
    checked: &Checked,
    controller: &Controller,
    run: &TaskId,
) -> Result<(), StartError> {
    let nodes = pipeline.nodes.iter().zip(&checked.graph);
    for (node, _) in nodes.filter(|(_, (_, upstream))| upstream.is_empty()) {
        let Ok(id) = task_id(run, &node.id) else { continue };
        // Where the store cannot be read, the submission will tell.
        if let Ok(Some(_)) = controller.get(&id) {
            let error = SubmitError::Exists { id, why: NotAdoptable::OnlyNew };
            return Err(StartError::Submit { node: node.id.clone(), error });
        }
    }
    Ok(())
}

/// Submits everything and starts the thread.
pub(crate) fn start(
    pipeline: &Pipeline,
    checked: Checked,
    controller: &Controller,
    run: &TaskId,
) -> Result<PipelineRun, StartError> {
    let Checked { submits, graph } = checked;
    let runs = submit(pipeline, submits, &graph, controller)?;
    let names = pipeline.nodes.iter().map(|node| node.id.clone());
    let shared = Arc::new(Shared::new(run.as_str().into(), names.zip(runs).collect()));
    let (happened, happenings) = mpsc::channel();
    let decider = Decider::new(pipeline.aggregation, &graph);
    let runner = Runner {
        pipeline: pipeline.name.clone(),
        shared: Arc::clone(&shared),
        ends: vec![None; graph.len()],
        graph,
        args_of: pipeline.nodes.iter().map(|node| node.args_of.clone()).collect(),
        reason: None,
    };
    let spawned =
        thread::Builder::new().name("pipeline".into()).spawn(|| runner.run(decider, happenings));
    if let Err(error) = spawned {
        withdraw(shared.nodes.iter().map(|(_, run)| run), "the run's thread did not start");
        return Err(StartError::Thread(error));
    }
    for (number, (_, run)) in shared.nodes.iter().enumerate() {
        run.notify(&happened, Happened::Ended(number));
    }
    Ok(PipelineRun { shared, happened })
}

/// Submits all nodes, those that wait first: so nothing has run yet when one of them is refused.
fn submit(
    pipeline: &Pipeline,
    submits: Vec<chongming_core::Submit>,
    graph: &[(Join, Vec<usize>)],
    controller: &Controller,
) -> Result<Vec<TaskRun>, StartError> {
    let siblings = Siblings::new();
    let exempt = siblings.exempt();
    let tied = submits.into_iter().zip(graph).map(|(submit, (join, upstream))| {
        let submit = match (pipeline.aggregation, join) {
            (Aggregation::AllSettled, _) => submit,
            (Aggregation::FailFast, Join::AllSettled) => submit.siblings(exempt.clone()),
            (Aggregation::FailFast, _) => submit.siblings(siblings.clone()),
        };
        (submit, upstream)
    });
    let numbered = tied.enumerate();
    let (waiting, roots): (Vec<_>, Vec<_>) =
        numbered.partition(|(_, (_, upstream))| !upstream.is_empty());
    let mut runs: Vec<(usize, TaskRun)> = Vec::with_capacity(graph.len());
    for part in [waiting, roots] {
        let (numbers, part): (Vec<usize>, Vec<_>) =
            part.into_iter().map(|(number, (submit, _))| (number, submit)).unzip();
        let mut refused: Option<(usize, SubmitError)> = None;
        for (number, result) in numbers.into_iter().zip(controller.submit_many(part)) {
            match result {
                Ok(run) => runs.push((number, run)),
                Err(error) => drop(refused.get_or_insert((number, error))),
            }
        }
        if let Some((number, error)) = refused {
            let node = pipeline.nodes.get(number).map_or_else(Text::default, |n| n.id.clone());
            let why = format!("node {node:?} of its pipeline could not be submitted");
            withdraw(runs.iter().map(|(_, run)| run), &why);
            return Err(StartError::Submit { node, error });
        }
    }
    runs.sort_unstable_by_key(|(number, _)| *number);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

/// Takes back what was submitted of a run that does not come about.
fn withdraw<'a>(runs: impl Iterator<Item = &'a TaskRun>, why: &str) {
    for run in runs {
        run.fail_fast(why);
    }
}

impl Runner {
    fn run(mut self, mut decider: Decider, happenings: Receiver<Happened>) {
        let mut actions = Vec::new();
        for happened in happenings {
            let event = match happened {
                Happened::Ended(node) => {
                    let Some(status) = self.note_end(node) else { continue };
                    Event::Ended { node, status }
                }
                Happened::Cancelled(reason) => {
                    self.reason = reason;
                    Event::Cancelled
                }
            };
            decider.on(event, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Finished(status) => {
                        let outcome = self.outcome(status);
                        self.shared.end(outcome);
                        return;
                    }
                    Action::Release(node) => self.release(node),
                    Action::Skip { node, upstream, was } => {
                        if let Some((id, run)) = self.with_cause(node, upstream) {
                            run.skip(&format!("upstream node {id:?} {}", told(was)));
                        }
                    }
                    Action::FailFast { node, failed, was } => {
                        if let Some((id, run)) = self.with_cause(node, failed) {
                            run.fail_fast(&format!("node {id:?} {}", told(was)));
                        }
                    }
                    Action::Cancel(node) => {
                        if let Some((_, run)) = self.shared.nodes.get(node) {
                            run.cancel(self.reason.as_deref());
                        }
                    }
                }
            }
        }
    }

    /// Keeps how a node ended. What is refused to a task because it has ended needs no care: its end comes
    /// here.
    fn note_end(&mut self, node: usize) -> Option<Status> {
        let (_, run) = self.shared.nodes.get(node)?;
        let outcome = run.outcome()?;
        // A task that somebody else took over may go on there, but nothing of it comes back here.
        let status = outcome.status();
        let status = if status.is_terminal() { status } else { Status::Lost };
        *self.ends.get_mut(node)? = Some(outcome);
        Some(status)
    }

    fn release(&self, node: usize) {
        let (Some((_, run)), Some((_, upstream))) =
            (self.shared.nodes.get(node), self.graph.get(node))
        else {
            return;
        };
        let succeeded = upstream.iter().filter_map(|upstream| {
            let outcome = self.ends.get(*upstream)?.as_ref().filter(|outcome| outcome.ok())?;
            let (id, _) = self.shared.nodes.get(*upstream)?;
            Some((id.clone(), outcome.value().clone()))
        });
        let inputs: Arc<BTreeMap<_, _>> = Arc::new(succeeded.collect());
        let args_of = self.args_of.get(node).and_then(Option::as_ref);
        let args = args_of.map(|args_of| make_args(args_of, &inputs));
        let release = Release::new(inputs);
        run.release(match args {
            Some(args) => release.args(args),
            None => release,
        });
    }

    /// A node's task, and the id of the node that is the cause of what happens to it.
    fn with_cause(&self, node: usize, cause: usize) -> Option<(&Text, &TaskRun)> {
        let (id, _) = self.shared.nodes.get(cause)?;
        let (_, run) = self.shared.nodes.get(node)?;
        Some((id, run))
    }

    fn outcome(&self, status: PipelineStatus) -> PipelineOutcome {
        let nodes = &self.shared.nodes;
        let ended = nodes.iter().zip(&self.graph).zip(&self.ends);
        let outcomes = ended.filter_map(|(((id, _), (join, upstream)), outcome)| {
            let upstream = upstream.iter().filter_map(|node| nodes.get(*node));
            Some(NodeOutcome {
                node: id.clone(),
                depends_on: upstream.map(|(id, _)| id.clone()).collect(),
                join: *join,
                outcome: outcome.clone()?,
            })
        });
        PipelineOutcome {
            pipeline: self.pipeline.clone(),
            run_id: self.shared.run_id.clone(),
            status,
            nodes: outcomes.collect(),
        }
    }
}

/// How a node ended, in a sentence.
fn told(status: Status) -> String {
    match status {
        Status::Failed => "failed".to_owned(),
        Status::Succeeded => "succeeded".to_owned(),
        Status::Stopped => "was stopped".to_owned(),
        Status::Cancelled => "was cancelled".to_owned(),
        Status::Skipped => "was skipped".to_owned(),
        Status::Lost => "is lost".to_owned(),
        Status::Pending
        | Status::Blocked
        | Status::Queued
        | Status::RetryWait
        | Status::Starting
        | Status::Running
        | Status::Pausing
        | Status::Paused
        | Status::Stopping => format!("is {status}"),
    }
}
