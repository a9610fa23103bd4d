//! The nodes of a graph one below the other, with the lines between them drawn beside: as a log of commits is.
//!
//! A node that waits for nothing is `○`, any other `●`; a line goes down from a node until the last one that
//! waits for it. Each line has a lane of its own; lanes that found no room are a `…`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// More lanes than this are not drawn: nobody can follow them, and a wide graph stays a text of sensible size.
const MOST_LANES: usize = 20;

/// A line of the drawing: the node, and what stands beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphLine {
    /// Its number.
    pub(crate) node: usize,
    /// The drawing.
    pub(crate) lanes: String,
}

/// Draws a graph; for each node it is given the nodes that it waits for. Each node stands below those, otherwise
/// as near to them and as early as can be. Nodes in or behind a circle come last, as `↻`.
pub(crate) fn draw(upstream: &[Vec<usize>]) -> Vec<GraphLine> {
    let mut downstream = vec![Vec::new(); upstream.len()];
    for (node, upstream) in upstream.iter().enumerate() {
        for upstream in upstream {
            if let Some(downstream) = downstream.get_mut(*upstream) {
                downstream.push(node);
            }
        }
    }
    let order = order(upstream, &downstream);
    let mut is_drawn = vec![false; upstream.len()];
    let mut lanes = Lanes::new(downstream.iter().map(Vec::len).collect());
    let mut lines: Vec<GraphLine> = Vec::with_capacity(upstream.len());
    for node in order {
        let above = upstream.get(node).map_or(&[][..], Vec::as_slice);
        lines.push(GraphLine { node, lanes: lanes.row(node, above) });
        if let Some(is_drawn) = is_drawn.get_mut(node) {
            *is_drawn = true;
        }
    }
    let circular = is_drawn.iter().enumerate().filter(|(_, is_drawn)| !**is_drawn);
    lines.extend(circular.map(|(node, _)| GraphLine { node, lanes: "↻".to_owned() }));
    lines
}

/// Each node after those that it waits for, and chains kept together.
fn order(upstream: &[Vec<usize>], downstream: &[Vec<usize>]) -> Vec<usize> {
    let mut open: Vec<usize> = upstream.iter().map(Vec::len).collect();
    let is_free = |open: &[usize], node: usize| open.get(node) == Some(&0);
    let mut free: Vec<usize> = (0..open.len()).rev().filter(|node| is_free(&open, *node)).collect();
    let mut order = Vec::with_capacity(open.len());
    while let Some(node) = free.pop() {
        order.push(node);
        for below in downstream.get(node).into_iter().flatten().rev() {
            if let Some(open) = open.get_mut(*below) {
                *open -= 1;
            }
            if is_free(&open, *below) {
                free.push(*below);
            }
        }
    }
    order
}

/// The lines that go down from the nodes drawn so far.
struct Lanes {
    /// Whether each lane is in use.
    used: Vec<bool>,
    free: BinaryHeap<Reverse<usize>>,
    /// The lane of each node, and how many nodes are still to come that wait for it.
    lane_of: Vec<usize>,
    to_come: Vec<usize>,
}

/// What a row has in one lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Empty,
    /// A line that has nothing to do with this node.
    Passing,
    /// A line that leads to this node, and goes on.
    Branch,
    /// A line that leads to this node, and ends.
    End,
    Node,
}

impl Lanes {
    fn new(to_come: Vec<usize>) -> Self {
        let lane_of = vec![usize::MAX; to_come.len()];
        Self { used: Vec::new(), free: BinaryHeap::new(), lane_of, to_come }
    }

    /// Draws the next node.
    fn row(&mut self, node: usize, upstream: &[usize]) -> String {
        let mut joins: Vec<(usize, bool)> = Vec::with_capacity(upstream.len());
        for upstream in upstream {
            let Some(to_come) = self.to_come.get_mut(*upstream) else { continue };
            *to_come = to_come.saturating_sub(1);
            let ends = *to_come == 0;
            joins.extend(self.lane_of.get(*upstream).map(|lane| (*lane, ends)));
        }
        joins.sort_unstable();
        joins.dedup_by_key(|(lane, _)| *lane);
        for (lane, _) in joins.iter().filter(|(_, ends)| *ends) {
            self.release(*lane);
        }
        let own = joins.iter().find(|(_, ends)| *ends).map(|(lane, _)| *lane);
        let own = own.or_else(|| self.first_free()).unwrap_or(self.used.len());
        let row = self.marks(own, &joins);
        if self.to_come.get(node).is_some_and(|to_come| *to_come > 0) {
            self.take(own);
            if let Some(lane) = self.lane_of.get_mut(node) {
                *lane = own;
            }
        }
        drawn(&row, own, upstream.is_empty())
    }

    /// What stands in each lane that is drawn.
    fn marks(&self, own: usize, joins: &[(usize, bool)]) -> Vec<Mark> {
        let mut marks: Vec<Mark> = self
            .used
            .iter()
            .map(|used| if *used { Mark::Passing } else { Mark::Empty })
            .take(MOST_LANES + 1)
            .collect();
        let width = joins.iter().map(|(lane, _)| *lane).chain([own]).max().unwrap_or(own) + 1;
        marks.resize(marks.len().max(width.min(MOST_LANES + 1)), Mark::Empty);
        let joins =
            joins.iter().map(|(lane, ends)| (*lane, if *ends { Mark::End } else { Mark::Branch }));
        for (lane, mark) in joins.chain([(own, Mark::Node)]) {
            if let Some(there) = marks.get_mut(lane) {
                *there = mark;
            }
        }
        marks
    }

    fn release(&mut self, lane: usize) {
        if let Some(used) = self.used.get_mut(lane).filter(|used| **used) {
            *used = false;
            self.free.push(Reverse(lane));
        }
    }

    /// The first lane that is free; those in the heap may have been taken since.
    fn first_free(&mut self) -> Option<usize> {
        while let Some(Reverse(lane)) = self.free.peek().copied() {
            if self.used.get(lane) == Some(&false) {
                return Some(lane);
            }
            self.free.pop();
        }
        None
    }

    fn take(&mut self, lane: usize) {
        if lane >= self.used.len() {
            // A lane that was skipped was the last and stays free.
            self.free.extend((self.used.len()..lane).map(Reverse));
            self.used.resize(lane + 1, false);
        }
        if let Some(used) = self.used.get_mut(lane) {
            *used = true;
        }
    }
}

fn drawn(marks: &[Mark], own: usize, is_root: bool) -> String {
    let joins = |mark: &Mark| matches!(mark, Mark::Branch | Mark::End | Mark::Node);
    let first = marks.iter().position(joins).unwrap_or(own);
    let last = marks.iter().rposition(joins).unwrap_or(own);
    let mut out = String::with_capacity(marks.len() * 4);
    for (lane, mark) in marks.iter().enumerate().take(MOST_LANES) {
        let (left, right) = (lane > first && lane <= last, lane >= first && lane < last);
        out.push(match (mark, left, right) {
            (Mark::Empty, true, true) => '─',
            (Mark::Empty, _, _) => ' ',
            (Mark::Passing, _, _) => '│',
            (Mark::Branch, true, true) => '┼',
            (Mark::Branch, true, false) => '┤',
            (Mark::Branch, false, _) => '├',
            (Mark::End, true, true) => '┴',
            (Mark::End, true, false) => '┘',
            (Mark::End, false, _) => '└',
            (Mark::Node, _, _) if is_root => '○',
            (Mark::Node, _, _) => '●',
        });
        out.push(if right { '─' } else { ' ' });
    }
    if marks.len() > MOST_LANES {
        out.push('…');
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drawing of `name: upstream…` lines, as `lanes name`.
    fn drawing(nodes: &[(&str, &[&str])]) -> Vec<String> {
        let number = |name: &&str| nodes.iter().position(|(other, _)| other == name).unwrap();
        let graph: Vec<Vec<usize>> =
            nodes.iter().map(|(_, upstream)| upstream.iter().map(number).collect()).collect();
        let line = |line: GraphLine| format!("{} {}", line.lanes, nodes[line.node].0);
        draw(&graph).into_iter().map(line).collect()
    }

    #[test]
    fn chains_run_down_and_roots_are_open() {
        let nodes: &[(&str, &[&str])] =
            &[("c", &["b"]), ("a", &[]), ("b", &["a"]), ("x", &[]), ("y", &["x"])];
        assert_eq!(drawing(nodes), ["○ a", "● b", "● c", "○ x", "● y"]);
    }

    #[test]
    fn fans_open_and_close() {
        let nodes: &[(&str, &[&str])] = &[
            ("fetch", &[]),
            ("one", &["fetch"]),
            ("two", &["fetch"]),
            ("three", &["fetch"]),
            ("add", &["one", "two", "three"]),
            ("log", &["fetch", "add"]),
        ];
        assert_eq!(
            drawing(nodes),
            ["○ fetch", "├─● one", "├─│─● two", "├─│─│─● three", "│ ●─┴─┘ add", "●─┘ log",]
        );
    }

    #[test]
    fn lines_cross_without_touching() {
        let nodes: &[(&str, &[&str])] =
            &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "a"]), ("e", &["b", "c"])];
        assert_eq!(drawing(nodes), ["○ a", "├─● b", "├─┼─● d", "● │ c", "●─┘ e"]);
    }

    #[test]
    fn nodes_in_a_circle_are_told() {
        let nodes: &[(&str, &[&str])] =
            &[("a", &[]), ("b", &["c", "a"]), ("c", &["b"]), ("d", &["c"])];
        assert_eq!(drawing(nodes), ["○ a", "↻ b", "↻ c", "↻ d"]);
        assert_eq!(drawing(&[("self", &["self"])]), ["↻ self"]);
    }

    #[test]
    fn a_wide_graph_stays_narrow_and_a_deep_one_costs_no_stack() {
        let wide: Vec<Vec<usize>> =
            (0..5000).map(|_| vec![]).chain([(0..5000).collect()]).collect();
        let lines = draw(&wide);
        assert_eq!(lines.len(), 5001);
        assert!(lines.iter().all(|line| line.lanes.chars().count() <= 2 * MOST_LANES + 1));
        assert!(lines[5000].lanes.starts_with("●─┴─┴") && lines[5000].lanes.ends_with('…'));
        let deep: Vec<Vec<usize>> =
            (0..50_000_usize).map(|n| n.checked_sub(1).into_iter().collect()).collect();
        assert!(draw(&deep).iter().skip(1).all(|line| line.lanes == "●"));
    }
}
