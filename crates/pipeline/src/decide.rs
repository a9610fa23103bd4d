//! The deciding part of a run: what happened in, what is to be done out. Knows no task, controller, clock or
//! thread; nodes are numbers.
//!
//! In all it costs O(nodes + dependencies): each dependency is looked at twice, when its upstream is known not
//! to succeed and when it has ended, and a cascade happens once.

use chongming_core::Status;

use crate::join::{Aggregation, Join};
use crate::outcome::PipelineStatus;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node ended.
    Ended {
        /// Which.
        node: usize,
        /// How; a terminal status.
        status: Status,
    },
    /// A person cancels the run.
    Cancelled,
}

/// What is to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its upstream is ready.
    Release(usize),
    /// Its upstream can no longer satisfy it.
    Skip {
        /// Which.
        node: usize,
        /// The upstream node that settled it.
        upstream: usize,
        /// How that one ended, or will end.
        was: Status,
    },
    /// A fail-fast withdraws it.
    FailFast {
        /// Which.
        node: usize,
        /// The node that failed.
        failed: usize,
        /// How that one ended.
        was: Status,
    },
    /// The person's cancel, for this node.
    Cancel(usize),
    /// Every node has ended.
    Finished(PipelineStatus),
}

/// One run.
#[derive(Clone, Debug)]
pub struct Decider {
    aggregation: Aggregation,
    nodes: Vec<NodeState>,
    unfinished: usize,
    /// Its cascade, or a person's cancel, has been decided: nothing is withdrawn twice.
    has_failed: bool,
    is_cancelled: bool,
    worst: PipelineStatus,
}

#[derive(Clone, Debug)]
struct NodeState {
    join: Join,
    downstream: Vec<usize>,
    /// Upstream nodes that have not ended.
    open: usize,
    /// Upstream nodes that may still succeed.
    hopeful: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Blocked.
    Waiting,
    /// May run.
    Released,
    /// Told to end without having been released.
    Settled,
    /// Ended.
    Ended,
}

impl Decider {
    /// A run of nodes that each join the given upstream nodes; numbers that are no node, and cycles, must
    /// have been refused before. Nodes without upstream are released from the start.
    #[must_use]
    pub fn new(aggregation: Aggregation, nodes: &[(Join, Vec<usize>)]) -> Self {
        let state = |(join, upstream): &(Join, Vec<usize>)| NodeState {
            join: *join,
            downstream: Vec::new(),
            open: upstream.len(),
            hopeful: upstream.len(),
            phase: if upstream.is_empty() { Phase::Released } else { Phase::Waiting },
        };
        let mut states: Vec<NodeState> = nodes.iter().map(state).collect();
        for (node, (_, upstream)) in nodes.iter().enumerate() {
            for upstream in upstream {
                if let Some(upstream) = states.get_mut(*upstream) {
                    upstream.downstream.push(node);
                }
            }
        }
        Self {
            aggregation,
            unfinished: states.len(),
            nodes: states,
            has_failed: false,
            is_cancelled: false,
            worst: PipelineStatus::Succeeded,
        }
    }

    /// Draws the conclusions.
    pub fn on(&mut self, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Ended { node, status } => self.ended(node, status, out),
            Event::Cancelled => self.cancelled(out),
        }
    }

    fn ended(&mut self, node: usize, status: Status, out: &mut Vec<Action>) {
        let Some(state) = self.nodes.get_mut(node) else { return };
        let was = std::mem::replace(&mut state.phase, Phase::Ended);
        if was == Phase::Ended {
            return;
        }
        self.unfinished -= 1;
        self.worst = self.worst.max(PipelineStatus::of(status));
        if status == Status::Succeeded {
            self.succeeded(node, out);
        } else if was != Phase::Settled {
            // One that was skipped has been counted out before.
            self.hopeless(node, status, out);
        }
        if status.is_failure() && self.aggregation == Aggregation::FailFast && !self.has_failed {
            self.has_failed = true;
            self.cascade(node, status, out);
        }
        self.settled(node, out);
        if self.unfinished == 0 {
            out.push(Action::Finished(self.worst));
        }
    }

    /// A success starts those that wait for any.
    fn succeeded(&mut self, node: usize, out: &mut Vec<Action>) {
        for downstream in self.downstream(node) {
            let Some(state) = self.nodes.get_mut(downstream) else { continue };
            if state.phase == Phase::Waiting && state.join == Join::AnySucceeded {
                state.phase = Phase::Released;
                out.push(Action::Release(downstream));
            }
        }
    }

    /// A node will not succeed: whoever can no longer be satisfied is skipped, and so on.
    fn hopeless(&mut self, node: usize, status: Status, out: &mut Vec<Action>) {
        let mut hopeless = vec![(node, status)];
        while let Some((upstream, was)) = hopeless.pop() {
            for node in self.downstream(upstream) {
                let Some(state) = self.nodes.get_mut(node) else { continue };
                state.hopeful -= 1;
                let is_unsatisfiable = match state.join {
                    Join::AllSucceeded => true,
                    Join::AnySucceeded => state.hopeful == 0,
                    Join::AllSettled => false,
                };
                if state.phase == Phase::Waiting && is_unsatisfiable {
                    state.phase = Phase::Settled;
                    out.push(Action::Skip { node, upstream, was });
                    hopeless.push((node, Status::Skipped));
                }
            }
        }
    }

    /// Withdraws every unfinished node but those that exist to run whatever happens.
    fn cascade(&mut self, failed: usize, was: Status, out: &mut Vec<Action>) {
        for (node, state) in self.nodes.iter_mut().enumerate() {
            match (state.join, state.phase) {
                (Join::AllSettled, _) | (_, Phase::Settled | Phase::Ended) => {}
                (Join::AllSucceeded | Join::AnySucceeded, phase) => {
                    if phase == Phase::Waiting {
                        state.phase = Phase::Settled;
                    }
                    out.push(Action::FailFast { node, failed, was });
                }
            }
        }
    }

    /// After an end: those that waited for it, and now for nothing any more, start.
    fn settled(&mut self, node: usize, out: &mut Vec<Action>) {
        for downstream in self.downstream(node) {
            let Some(state) = self.nodes.get_mut(downstream) else { continue };
            state.open -= 1;
            // Who joins by all_succeeded and waits still has seen no failure.
            if state.open == 0 && state.phase == Phase::Waiting {
                state.phase = Phase::Released;
                out.push(Action::Release(downstream));
            }
        }
    }

    fn cancelled(&mut self, out: &mut Vec<Action>) {
        if std::mem::replace(&mut self.is_cancelled, true) {
            return;
        }
        for (node, state) in self.nodes.iter_mut().enumerate() {
            match state.phase {
                Phase::Ended => {}
                Phase::Waiting => {
                    state.phase = Phase::Settled;
                    out.push(Action::Cancel(node));
                }
                Phase::Released | Phase::Settled => out.push(Action::Cancel(node)),
            }
        }
    }

    fn downstream(&self, node: usize) -> Vec<usize> {
        self.nodes.get(node).map_or_else(Vec::new, |state| state.downstream.clone())
    }
}
