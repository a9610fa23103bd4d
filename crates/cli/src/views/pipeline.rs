//! A run of a pipeline: its object, its table, what is shown of it while it goes on.

use chongming_core::{Status, TaskSnapshot, Timestamp};
use serde::Serialize;

use super::task::{TaskJson, attempt, elapsed, headline};
use crate::output::escape::visible;
use crate::output::progress::summary;
use crate::output::table::{Cell, Column, Table};

/// A run as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct PipelineJson<'a> {
    /// The pipeline's name.
    pub(crate) pipeline: &'a str,
    /// What the ids of its tasks begin with.
    pub(crate) run_id: &'a str,
    /// How it ended.
    pub(crate) status: &'static str,
    /// Its nodes, in the order of the manifest.
    pub(crate) nodes: Vec<PipelineNodeJson<'a>>,
}

/// A node: its task, and its place among the others.
#[derive(Debug, Serialize)]
pub(crate) struct PipelineNodeJson<'a> {
    /// The id within the pipeline.
    pub(crate) node: &'a str,
    /// The upstream nodes.
    pub(crate) depends_on: Vec<&'a str>,
    /// When it could start.
    pub(crate) join: &'static str,
    /// Its task.
    #[serde(flatten)]
    pub(crate) task: TaskJson<'a>,
}

/// The nodes of a run.
pub(crate) fn table<'a>(
    nodes: impl IntoIterator<Item = (&'a str, &'a TaskSnapshot)>,
    now: Timestamp,
) -> Table<7> {
    let mut table = Table::new([
        Column::key("NODE"),
        Column::text("TASK"),
        Column::key("STATUS"),
        Column::key("ATTEMPT"),
        Column::key("ELAPSED"),
        Column::text("PROGRESS"),
        Column::text("FAILURE"),
    ]);
    for (node, task) in nodes {
        table.row([
            node.into(),
            (&*task.name).into(),
            Cell::status(task.status()),
            attempt(task).into(),
            elapsed(task, now).unwrap_or_default().into(),
            task.progress.as_deref().map(summary).unwrap_or_default().into(),
            task.failure.as_deref().map(headline).unwrap_or_default().into(),
        ]);
    }
    table
}

/// What a terminal shows of a run while it goes on: how many nodes are where, and the table; of more nodes than
/// there is room for, those that run.
pub(crate) fn frame(
    name: &str,
    nodes: &[(&str, &TaskSnapshot)],
    now: Timestamp,
    (columns, rows): (usize, usize),
    color: bool,
) -> Vec<String> {
    // The line of counts, the header, and the line that the cursor stands on.
    const TAKEN: usize = 3;
    let fits = nodes.len() + TAKEN <= rows;
    let shown = nodes.iter().filter(|(_, task)| fits || task.status().holds_slot());
    let mut lines = vec![format!("{name}: {}", counts(nodes.iter().map(|(_, task)| *task)))];
    lines.extend(table(shown.copied(), now).lines(Some(columns), color));
    lines
}

/// `1 running, 3 succeeded`.
pub(crate) fn counts<'a>(tasks: impl IntoIterator<Item = &'a TaskSnapshot>) -> String {
    let statuses: Vec<Status> = tasks.into_iter().map(TaskSnapshot::status).collect();
    let count = |status| statuses.iter().filter(|other| **other == status).count();
    let counts = Status::ALL.into_iter().map(|status| (status, count(status)));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(status, count)| format!("{count} {status}")).collect::<Vec<_>>().join(", ")
}

/// The line about a node that has ended, where nothing is drawn.
pub(crate) fn node_line(node: &str, task: &TaskSnapshot, now: Timestamp) -> String {
    let after = elapsed(task, now).map(|elapsed| format!(" after {elapsed}")).unwrap_or_default();
    let why = task.failure.as_deref().map(headline).map(|why| format!(", {why}"));
    let line = format!("{node}: {}{after}{}", task.status(), why.unwrap_or_default());
    visible(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples::{at, fresh, full};

    #[test]
    fn a_node_is_its_task_with_its_place() {
        let task = full("r:load");
        let node = PipelineNodeJson {
            node: "load",
            depends_on: vec!["fetch"],
            join: "all_succeeded",
            task: TaskJson::from(&task),
        };
        let json = serde_json::to_value(node).unwrap();
        assert_eq!((&json["task_id"], &json["node"]), (&"r:load".into(), &"load".into()));
        assert_eq!(json["depends_on"], serde_json::json!(["fetch"]));
        assert_eq!(json["progress"]["done"], 3);
    }

    #[test]
    fn a_frame_shows_all_nodes_or_those_that_run() {
        let (ended, running) = (full("e"), fresh("w").restored(Status::Running, 3));
        let nodes = [("end\x1bed", &ended), ("on", &running)];
        let lines = frame("p", &nodes, at(10), (60, 24), false);
        assert_eq!(lines[0], "p: 1 running, 1 failed");
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| !line.contains('\x1b')), "{lines:?}");
        let lines = frame("p", &nodes, at(10), (60, 4), false);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].starts_with("on"), "{lines:?}");
    }

    #[test]
    fn the_end_of_a_node_has_one_harmless_line() {
        let line = node_line("a\n", &full("r:a"), at(10));
        assert_eq!(line, "a\\n: failed after 7.0s, exit_code: exited with 7");
    }
}
