//! A load fails; what depends on it is skipped, what runs beside it is cancelled, and the clean-up, which joins
//! by all_settled, runs all the same.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use chongming_core::{Controller, TaskContext, TaskDefinition, TaskError};
use chongming_pipeline::{Join, Node, Pipeline};

fn create(_: &TaskContext, (): ()) -> Result<String, TaskError> {
    Ok("scratch-7".to_owned())
}

fn load(_: &TaskContext, (): ()) -> Result<(), TaskError> {
    Err(TaskError::permanent("row 3 has no date"))
}

fn index(ctx: &TaskContext, (): ()) -> Result<(), TaskError> {
    // Stopped by the failure of `load`.
    ctx.sleep(Duration::from_secs(3600))
}

fn report(_: &TaskContext, (): ()) -> Result<(), TaskError> {
    Ok(())
}

fn remove(ctx: &TaskContext, (): ()) -> Result<String, TaskError> {
    Ok(format!("removed {}", ctx.input::<String>("create")?))
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let controller = Controller::builder()
        .register(TaskDefinition::new("create", create))
        .register(TaskDefinition::new("load", load))
        .register(TaskDefinition::new("index", index))
        .register(TaskDefinition::new("report", report))
        .register(TaskDefinition::new("remove", remove))
        .build()?;

    let outcome = Pipeline::new("nightly")
        .node(Node::new("create", "create"))
        .node(Node::new("load", "load").after("create"))
        .node(Node::new("index", "index").after("create"))
        .node(Node::new("report", "report").after("load"))
        .node(
            Node::new("remove", "remove")
                .depends_on(["create", "load", "index", "report"])
                .join(Join::AllSettled),
        )
        .start(&controller)?
        .wait(None)?;
    for node in &outcome.nodes {
        writeln!(out, "{}: {} {}", node.node, node.outcome.status(), node.outcome.value())?;
    }
    writeln!(out, "{}", outcome.status)?;
    Ok(())
}
