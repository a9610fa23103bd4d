//! Two sources, one of which is down: the node that joins by any_succeeded takes whichever answers.

use std::error::Error;
use std::io::{self, Write};

use chongming_core::{Controller, TaskContext, TaskDefinition, TaskError};
use chongming_pipeline::{Aggregation, Join, Node, Pipeline};

fn primary(_: &TaskContext, (): ()) -> Result<String, TaskError> {
    Err(TaskError::new("the primary is down"))
}

fn replica(_: &TaskContext, (): ()) -> Result<String, TaskError> {
    Ok("rates of the replica".to_owned())
}

fn publish(ctx: &TaskContext, (): ()) -> Result<String, TaskError> {
    // Only what succeeded is there.
    let replica: String = ctx.input_or("replica", String::new())?;
    ctx.input_or("primary", replica)
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let controller = Controller::builder()
        .register(TaskDefinition::new("primary", primary))
        .register(TaskDefinition::new("replica", replica))
        .register(TaskDefinition::new("publish", publish))
        .build()?;

    let pipeline = Pipeline::new("rates")
        // With fail-fast, the first failure would cancel the alternative as well.
        .aggregation(Aggregation::AllSettled)
        .node(Node::new("primary", "primary"))
        .node(Node::new("replica", "replica"))
        .node(
            Node::new("publish", "publish")
                .depends_on(["primary", "replica"])
                .join(Join::AnySucceeded),
        )
        .node(Node::new("audit", "publish").after("primary"));

    let outcome = pipeline.start(&controller)?.wait(None)?;
    for node in &outcome.nodes {
        writeln!(out, "{}: {} {}", node.node, node.outcome.status(), node.outcome.value())?;
    }
    // A failed node is told, even where another stepped in.
    writeln!(out, "{}", outcome.status)?;
    Ok(())
}
