//! The deciding part against a naive model, which derives every verdict anew from the rules, on random graphs
//! with random ends in random order.
#![expect(clippy::indexing_slicing, reason = "helpers outside of test functions")]

use chongming_core::Status;
use chongming_pipeline::decide::{Action, Decider, Event};
use chongming_pipeline::{Aggregation, Join, PipelineStatus};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Blocked,
    Running,
    /// Was told to end while it was blocked.
    Withdrawn(Status),
    Ended(Status),
}

/// The rules, without any cleverness.
struct Model {
    aggregation: Aggregation,
    graph: Vec<(Join, Vec<usize>)>,
    nodes: Vec<Node>,
    has_failed: bool,
    is_cancelled: bool,
}

impl Model {
    fn new(aggregation: Aggregation, graph: &[(Join, Vec<usize>)]) -> Self {
        let start = |(_, upstream): &(Join, Vec<usize>)| match upstream.is_empty() {
            true => Node::Running,
            false => Node::Blocked,
        };
        let nodes = graph.iter().map(start).collect();
        Self { aggregation, graph: graph.to_vec(), nodes, has_failed: false, is_cancelled: false }
    }

    fn unfinished(&self) -> Vec<usize> {
        let all = 0..self.nodes.len();
        all.filter(|n| !matches!(self.nodes[*n], Node::Ended(_))).collect()
    }

    fn will_not_succeed(&self, node: usize) -> bool {
        match self.nodes[node] {
            Node::Blocked | Node::Running => false,
            Node::Withdrawn(_) => true,
            Node::Ended(status) => status != Status::Succeeded,
        }
    }

    fn succeeded(&self, node: usize) -> bool {
        self.nodes[node] == Node::Ended(Status::Succeeded)
    }

    fn ended(&self, node: usize) -> bool {
        matches!(self.nodes[node], Node::Ended(_))
    }

    fn is_unsatisfiable(&self, node: usize) -> bool {
        let (join, upstream) = &self.graph[node];
        match join {
            Join::AllSucceeded => upstream.iter().any(|n| self.will_not_succeed(*n)),
            Join::AnySucceeded => upstream.iter().all(|n| self.will_not_succeed(*n)),
            Join::AllSettled => false,
        }
    }

    fn is_ready(&self, node: usize) -> bool {
        let (join, upstream) = &self.graph[node];
        match join {
            Join::AllSucceeded => upstream.iter().all(|n| self.succeeded(*n)),
            Join::AnySucceeded => upstream.iter().any(|n| self.succeeded(*n)),
            Join::AllSettled => upstream.iter().all(|n| self.ended(*n)),
        }
    }

    /// What must follow: skipped, withdrawn, cancelled and released nodes, and the end.
    fn on(&mut self, event: Event) -> Expected {
        let mut expected = Expected::default();
        match event {
            Event::Cancelled => {
                if !std::mem::replace(&mut self.is_cancelled, true) {
                    expected.cancelled = self.unfinished();
                    for node in self.unfinished() {
                        if self.nodes[node] == Node::Blocked {
                            self.nodes[node] = Node::Withdrawn(Status::Cancelled);
                        }
                    }
                }
                return expected;
            }
            Event::Ended { node, status } => {
                self.nodes[node] = Node::Ended(status);
                while let Some(node) = (0..self.nodes.len())
                    .find(|n| self.nodes[*n] == Node::Blocked && self.is_unsatisfiable(*n))
                {
                    self.nodes[node] = Node::Withdrawn(Status::Skipped);
                    expected.skipped.push(node);
                }
                let triggers = matches!(status, Status::Failed | Status::Lost | Status::Stopped);
                if triggers && self.aggregation == Aggregation::FailFast && !self.has_failed {
                    self.has_failed = true;
                    for node in self.unfinished() {
                        if self.graph[node].0 == Join::AllSettled {
                            continue;
                        }
                        match self.nodes[node] {
                            Node::Running => expected.withdrawn.push(node),
                            Node::Blocked => {
                                self.nodes[node] = Node::Withdrawn(Status::Cancelled);
                                expected.withdrawn.push(node);
                            }
                            Node::Withdrawn(_) | Node::Ended(_) => {}
                        }
                    }
                }
                for node in 0..self.nodes.len() {
                    if self.nodes[node] == Node::Blocked && self.is_ready(node) {
                        self.nodes[node] = Node::Running;
                        expected.released.push(node);
                    }
                }
            }
        }
        if self.unfinished().is_empty() {
            let is = |statuses: &[Status]| {
                self.nodes.iter().any(|n| matches!(n, Node::Ended(s) if statuses.contains(s)))
            };
            expected.finished = Some(match is(&[Status::Failed, Status::Lost, Status::Stopped]) {
                true => PipelineStatus::Failed,
                false if is(&[Status::Cancelled]) => PipelineStatus::Cancelled,
                false => PipelineStatus::Succeeded,
            });
        }
        expected
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    skipped: Vec<usize>,
    withdrawn: Vec<usize>,
    cancelled: Vec<usize>,
    released: Vec<usize>,
    finished: Option<PipelineStatus>,
}

/// What was decided, sorted; skips must come first, then the cascade, then what starts, then the end.
fn decided(actions: &[Action]) -> Expected {
    let mut decided = Expected::default();
    let rank = |action: &Action| match action {
        Action::Skip { .. } => 0,
        Action::FailFast { .. } => 1,
        Action::Cancel(_) | Action::Release(_) => 2,
        Action::Finished(_) => 3,
    };
    assert!(actions.is_sorted_by_key(rank), "{actions:?}");
    for action in actions {
        match action {
            Action::Skip { node, .. } => decided.skipped.push(*node),
            Action::FailFast { node, .. } => decided.withdrawn.push(*node),
            Action::Cancel(node) => decided.cancelled.push(*node),
            Action::Release(node) => decided.released.push(*node),
            Action::Finished(status) => {
                assert_eq!(decided.finished, None);
                decided.finished = Some(*status);
            }
        }
    }
    decided.sorted()
}

impl Expected {
    fn sorted(mut self) -> Self {
        for nodes in
            [&mut self.skipped, &mut self.withdrawn, &mut self.cancelled, &mut self.released]
        {
            nodes.sort_unstable();
        }
        self
    }
}

/// Chooses by a number that each choice uses up a bit.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Lets the world go its way until every node has ended.
fn play(aggregation: Aggregation, graph: &[(Join, Vec<usize>)], seed: u64) {
    const RUN: [Status; 9] = [
        Status::Succeeded,
        Status::Succeeded,
        Status::Succeeded,
        Status::Succeeded,
        Status::Succeeded,
        Status::Failed,
        Status::Lost,
        Status::Stopped,
        Status::Cancelled,
    ];
    let mut chance = Chance(seed | 1);
    let mut model = Model::new(aggregation, graph);
    let mut decider = Decider::new(aggregation, graph);
    let mut actions = Vec::new();
    let mut told = Vec::new();
    while !model.unfinished().is_empty() {
        let (blocked, due): (Vec<usize>, Vec<usize>) =
            model.unfinished().into_iter().partition(|n| model.nodes[*n] == Node::Blocked);
        assert!(!due.is_empty(), "{blocked:?} wait for nothing: {:?}", model.nodes);
        let event = match chance.below(40) {
            0 => Event::Cancelled,
            // A person ends a task that waits.
            1 | 2 if !blocked.is_empty() => Event::Ended {
                node: chance.of(&blocked),
                status: chance.of(&[Status::Stopped, Status::Cancelled]),
            },
            _ => {
                let node = chance.of(&due);
                let status = match model.nodes[node] {
                    // A person may have been faster than the decision.
                    Node::Withdrawn(status) => chance.of(&[status, status, Status::Stopped]),
                    Node::Blocked | Node::Running | Node::Ended(_) => chance.of(&RUN),
                };
                Event::Ended { node, status }
            }
        };
        let expected = model.on(event).sorted();
        decider.on(event, &mut actions);
        assert_eq!(decided(&actions), expected, "after {event:?}");
        told.append(&mut actions);
    }
    let is_end = |action: &&Action| matches!(action, Action::Finished(_));
    assert_eq!(told.iter().filter(is_end).count(), 1);
    // What was ended by then changes nothing any more.
    decider.on(Event::Cancelled, &mut actions);
    decider.on(Event::Ended { node: 0, status: Status::Failed }, &mut actions);
    assert_eq!(actions, []);
}

/// A graph without cycles, its nodes numbered in no particular order.
fn graphs() -> impl Strategy<Value = Vec<(Join, Vec<usize>)>> {
    let join = prop::sample::select(Join::ALL.to_vec());
    let nodes = prop::collection::vec((join, any::<u32>(), any::<u32>()), 1..14);
    let shuffled = nodes.prop_flat_map(|nodes| {
        let numbers = Just((0..nodes.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(nodes), numbers)
    });
    shuffled.prop_map(|(nodes, numbers)| {
        let mut graph = vec![(Join::default(), Vec::new()); nodes.len()];
        for (at, (join, one, other)) in nodes.iter().enumerate() {
            // Each earlier node is upstream with a chance of one in four.
            let upstream = (0..at).filter(|bit| one & other & (1 << bit) != 0);
            graph[numbers[at]] = (*join, upstream.map(|n| numbers[n]).collect());
        }
        graph
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    #[test]
    fn every_node_ends_as_the_rules_say(graph in graphs(), fail_fast: bool, seed: u64) {
        let aggregation = if fail_fast { Aggregation::FailFast } else { Aggregation::AllSettled };
        play(aggregation, &graph, seed);
    }
}

#[test]
fn a_failure_skips_what_it_makes_unsatisfiable_then_cancels_the_rest() {
    // 0 fails; 1 needs 0; 2 runs; 3 cleans up after 1; 4 needs 3.
    let graph = [
        (Join::AllSucceeded, vec![]),
        (Join::AllSucceeded, vec![0]),
        (Join::AllSucceeded, vec![]),
        (Join::AllSettled, vec![1]),
        (Join::AllSucceeded, vec![3]),
    ];
    let mut decider = Decider::new(Aggregation::FailFast, &graph);
    let mut on = |node, status| {
        let mut actions = Vec::new();
        decider.on(Event::Ended { node, status }, &mut actions);
        actions
    };
    let was = Status::Failed;
    assert_eq!(
        on(0, was),
        [
            Action::Skip { node: 1, upstream: 0, was },
            Action::FailFast { node: 2, failed: 0, was },
            Action::FailFast { node: 4, failed: 0, was },
        ]
    );
    assert_eq!(on(1, Status::Skipped), [Action::Release(3)]);
    assert_eq!(on(4, Status::Cancelled), []);
    assert_eq!(on(2, Status::Cancelled), []);
    assert_eq!(on(3, Status::Succeeded), [Action::Finished(PipelineStatus::Failed)]);
}

#[test]
fn a_hundred_thousand_nodes_deep_or_wide_are_no_burden() {
    const NODES: usize = 100_000;
    let deep: Vec<_> = (0..NODES)
        .map(|n| (Join::AllSucceeded, n.checked_sub(1).into_iter().collect::<Vec<_>>()))
        .collect();
    let wide: Vec<_> =
        (0..NODES).map(|n| (Join::AllSucceeded, if n == 0 { vec![] } else { vec![0] })).collect();
    for graph in [deep, wide] {
        for status in [Status::Succeeded, Status::Failed] {
            let mut decider = Decider::new(Aggregation::AllSettled, &graph);
            let mut actions = Vec::new();
            decider.on(Event::Ended { node: 0, status }, &mut actions);
            let mut at = 0;
            while let Some(action) = actions.get(at).copied() {
                let (node, status) = match action {
                    Action::Release(node) => (node, Status::Succeeded),
                    Action::Skip { node, .. } => (node, Status::Skipped),
                    other @ (Action::FailFast { .. } | Action::Cancel(_) | Action::Finished(_)) => {
                        assert!(matches!(other, Action::Finished(_)));
                        break;
                    }
                };
                decider.on(Event::Ended { node, status }, &mut actions);
                at += 1;
            }
            assert_eq!(at, NODES - 1);
        }
    }
}
