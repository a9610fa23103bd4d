//! Whether a pipeline can be run: all that is wrong with it, found before anything is submitted.

use std::collections::{HashMap, HashSet};

use chongming_core::{Controller, InvalidText, Submit, TaskId, check_name};

use crate::join::Join;
use crate::mistake::{InvalidPipeline, Mistake};
use crate::pipeline::Pipeline;

/// A pipeline without mistakes: for each node what is submitted, and its upstream nodes as numbers.
pub(crate) struct Checked {
    pub(crate) submits: Vec<Submit>,
    pub(crate) graph: Vec<(Join, Vec<usize>)>,
}

impl Checked {
    /// Checks a pipeline's structure and, with a controller, whether that would take its tasks in.
    pub(crate) fn new(
        pipeline: &Pipeline,
        run: &TaskId,
        controller: Option<&Controller>,
    ) -> Result<Self, InvalidPipeline> {
        let mut mistakes = Vec::new();
        if pipeline.nodes.is_empty() {
            mistakes.push(Mistake::Empty);
        }
        mistakes.extend(check_name("pipeline", &pipeline.name).err().map(Mistake::Text));
        let graph = graph(pipeline, &mut mistakes);
        let ids = task_ids(pipeline, run, &mut mistakes);
        cycles(&graph, |cycle| {
            let nodes = cycle.iter().filter_map(|node| pipeline.nodes.get(*node));
            mistakes.push(Mistake::Cycle(nodes.map(|node| node.id.clone()).collect()));
        });
        let mut submits = Vec::with_capacity(ids.len());
        for ((node, id), (_, upstream)) in pipeline.nodes.iter().zip(&ids).zip(&graph) {
            let Some(id) = id else { continue };
            let upstream: Vec<TaskId> =
                upstream.iter().filter_map(|node| ids.get(*node).cloned().flatten()).collect();
            let submit = pipeline.submit(node, id.clone(), upstream.into_iter());
            if let Some(Err(error)) = controller.map(|c| c.validate(&submit)) {
                mistakes.push(Mistake::Submit { node: node.id.clone(), error });
            }
            submits.push(submit);
        }
        if mistakes.is_empty() {
            return Ok(Self { submits, graph });
        }
        Err(InvalidPipeline { pipeline: pipeline.name.clone(), mistakes })
    }
}

/// The upstream nodes of each node, as numbers; those that make no sense are left out.
fn graph(pipeline: &Pipeline, mistakes: &mut Vec<Mistake>) -> Vec<(Join, Vec<usize>)> {
    let mut numbers = HashMap::with_capacity(pipeline.nodes.len());
    let mut told = HashSet::new();
    for (number, node) in pipeline.nodes.iter().enumerate() {
        if numbers.contains_key(&node.id) {
            if told.insert(&node.id) {
                mistakes.push(Mistake::DuplicateId(node.id.clone()));
            }
        } else {
            numbers.insert(&node.id, number);
        }
    }
    let mut graph = Vec::with_capacity(pipeline.nodes.len());
    for node in &pipeline.nodes {
        let mut seen = HashSet::with_capacity(node.depends_on.len());
        let mut upstream = Vec::with_capacity(node.depends_on.len());
        for dependency in &node.depends_on {
            let (id, wanted) = (node.id.clone(), dependency.clone());
            if *dependency == node.id {
                mistakes.push(Mistake::SelfDependency(id));
            } else if !seen.insert(dependency) {
                mistakes.push(Mistake::RepeatedDependency { node: id, dependency: wanted });
            } else if let Some(number) = numbers.get(dependency) {
                upstream.push(*number);
            } else {
                mistakes.push(Mistake::UnknownDependency { node: id, dependency: wanted });
            }
        }
        graph.push((node.join, upstream));
    }
    graph
}

/// The id of a node's task, `run:node`.
pub(crate) fn task_id(run: &TaskId, node: &str) -> Result<TaskId, InvalidText> {
    check_name("node id", node)?;
    TaskId::new(format!("{run}:{node}"))
}

/// The id of each node's task; none where that is no id.
fn task_ids(pipeline: &Pipeline, run: &TaskId, mistakes: &mut Vec<Mistake>) -> Vec<Option<TaskId>> {
    let ids = pipeline.nodes.iter().map(|node| match task_id(run, &node.id) {
        Ok(id) => Some(id),
        Err(error) => {
            mistakes.push(Mistake::Text(error));
            None
        }
    });
    ids.collect()
}

/// Tells cycles, at least one of each group of nodes that wait for one another: as long as there is one,
/// something is told.
fn cycles(graph: &[(Join, Vec<usize>)], mut tell: impl FnMut(&[usize])) {
    // Takes away whatever waits for nothing that is left; what stays waits in or for a circle.
    let mut open: Vec<usize> = graph.iter().map(|(_, upstream)| upstream.len()).collect();
    let mut downstream = vec![Vec::new(); graph.len()];
    for (node, (_, upstream)) in graph.iter().enumerate() {
        for upstream in upstream {
            if let Some(downstream) = downstream.get_mut(*upstream) {
                downstream.push(node);
            }
        }
    }
    let mut free: Vec<usize> = (0..graph.len()).filter(|n| open.get(*n) == Some(&0)).collect();
    while let Some(node) = free.pop() {
        for downstream in downstream.get(node).into_iter().flatten() {
            if let Some(open) = open.get_mut(*downstream) {
                *open -= 1;
                if *open == 0 {
                    free.push(*downstream);
                }
            }
        }
    }
    // From each node that stays, a walk upstream among those that stay ends in a circle.
    let stays = |node: usize| open.get(node).is_some_and(|open| *open > 0);
    let mut walked: HashMap<usize, usize> = HashMap::new();
    for start in (0..graph.len()).filter(|node| stays(*node)) {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(node) = at {
            if let Some(walk) = walked.get(&node) {
                let begin = path.iter().position(|on_path| *on_path == node);
                if let Some(circle) = begin.and_then(|b| path.get(b..)).filter(|_| *walk == start) {
                    tell(circle);
                }
                break;
            }
            walked.insert(node, start);
            path.push(node);
            let mut upstream = graph.get(node).into_iter().flat_map(|(_, upstream)| upstream);
            at = upstream.find(|node| stays(**node)).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Node;

    fn mistakes(pipeline: &Pipeline) -> Vec<String> {
        let error = pipeline.check().err();
        error.map_or_else(Vec::new, |e| e.mistakes.iter().map(ToString::to_string).collect())
    }

    fn pipeline(nodes: &[(&str, &[&str])]) -> Pipeline {
        let node = |(id, after): &(&str, &[&str])| Node::new(*id, "t").depends_on(after.to_vec());
        nodes.iter().map(node).fold(Pipeline::new("p"), Pipeline::node)
    }

    #[test]
    fn a_sound_pipeline_has_no_mistakes_in_whatever_order() {
        let sound = pipeline(&[("d", &["b", "c"]), ("b", &["a"]), ("c", &["a"]), ("a", &[])]);
        assert_eq!(mistakes(&sound), Vec::<String>::new());
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let wrong = pipeline(&[
            ("a", &["zz"]),
            ("a", &[]),
            ("b", &["b"]),
            ("c", &["a", "a"]),
            ("d", &["e"]),
            ("e", &["f"]),
            ("f", &["d", "a"]),
            ("after", &["f"]),
            ("x\ny", &[]),
        ]);
        assert_eq!(
            mistakes(&wrong),
            [
                "more than one node is named \"a\"",
                "node \"a\" waits for \"zz\", which is no node",
                "node \"b\" waits for itself",
                "node \"c\" names \"a\" more than once",
                "node id \"x\\ny\" contains the control character U+000A; remove it",
                "these nodes wait for one another: d → e → f → d",
            ]
        );
        assert_eq!(mistakes(&Pipeline::new("p")), ["it has no node; add one"]);
        assert_eq!(mistakes(&Pipeline::new("").node(Node::new("a", "t"))).len(), 1);
    }

    #[test]
    fn circles_are_told_each_once() {
        let two = pipeline(&[("a", &["b"]), ("b", &["a"]), ("c", &["d"]), ("d", &["c", "a"])]);
        let told = mistakes(&two);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].ends_with("a → b → a") && told[1].ends_with("c → d → c"), "{told:?}");
    }

    #[test]
    fn ids_have_room_for_the_run_and_the_node() {
        let run = TaskId::new("r".repeat(250)).unwrap();
        let fits = Checked::new(&pipeline(&[("abcd", &[])]), &run, None);
        assert_eq!(fits.ok().map(|checked| checked.submits.len()), Some(1));
        let error = Checked::new(&pipeline(&[("abcde", &[])]), &run, None).err().unwrap();
        assert!(error.to_string().contains("256 bytes"), "{error}");
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = (1..100_000)
            .fold(Pipeline::new("p").node(Node::new("0", "t").after("99999")), |pipeline, i| {
                pipeline.node(Node::new(i.to_string(), "t").after((i - 1).to_string()))
            });
        assert_eq!(deep.check().unwrap_err().mistakes.len(), 1);
    }
}
