//! One node fetches, three work on a share each, one adds up: results flow along the dependencies.

use std::error::Error;
use std::io::{self, Write};

use chongming_core::{Controller, TaskContext, TaskDefinition, TaskError};
use chongming_pipeline::{Node, Pipeline};

fn fetch(_: &TaskContext, (): ()) -> Result<Vec<i64>, TaskError> {
    Ok((1..=9).collect())
}

fn square(ctx: &TaskContext, share: i64) -> Result<i64, TaskError> {
    let numbers: Vec<i64> = ctx.input("fetch")?;
    Ok(numbers.iter().filter(|n| *n % 3 == share).map(|n| n * n).sum())
}

fn add(ctx: &TaskContext, (): ()) -> Result<i64, TaskError> {
    (0..3).map(|share| ctx.input::<i64>(&format!("square-{share}"))).sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let controller = Controller::builder()
        .register(TaskDefinition::new("fetch", fetch))
        .register(TaskDefinition::new("square", square))
        .register(TaskDefinition::new("add", add))
        .build()?;

    let squares = |share: i64| format!("square-{share}");
    let mut pipeline = Pipeline::new("sum-of-squares").node(Node::new("fetch", "fetch"));
    for share in 0..3 {
        pipeline = pipeline.node(Node::new(squares(share), "square").args(share).after("fetch"));
    }
    pipeline = pipeline.node(Node::new("add", "add").depends_on((0..3).map(squares)));

    let outcome = pipeline.start(&controller)?.wait(None)?;
    for node in &outcome.nodes {
        writeln!(out, "{}: {} {}", node.node, node.outcome.status(), node.outcome.value())?;
    }
    writeln!(out, "{}", outcome.status)?;
    Ok(())
}
