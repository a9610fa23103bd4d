//! What a pipeline costs, and that it does so per node: each shape runs with 1,000 nodes and with 10,000.
//!
//! A figure is nodes per second from the start of the run to its end; the raw limit beside it is the same number of
//! no-op tasks without a pipeline: submitted at once, for the chain each when the one before has ended. The last figure of each shape is the time per node of 10,000
//! against that of 1,000: 1 is linear, 10 would be quadratic. `--json` prints one object a line.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use chongming_core::store::TaskStore;
use chongming_core::{Controller, InMemoryStore, Submit, TaskContext, TaskDefinition, TaskError};
use chongming_pipeline::{Node, Pipeline};
use chongming_store_sqlite::{Options, SqliteStore};

#[path = "../../store-sqlite/benches/support/report.rs"]
mod report;

use report::Report;

type Anything = Box<dyn std::error::Error + Send + Sync>;

const FEW: usize = 1000;
const MANY: usize = 10_000;
const ROUNDS: usize = 3;

/// A pipeline of so many nodes.
type Shape = fn(usize) -> Pipeline;

/// What is measured.
#[derive(Clone, Copy)]
enum Work {
    Pipeline(Shape),
    /// Tasks, submitted at once.
    AtOnce,
    /// Tasks, each submitted when the one before has ended.
    InTurn,
}

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    let shapes: [(&str, Shape); 3] =
        [("independent", independent), ("chain", chain), ("fan_in", fan_in)];
    for store in ["memory", "sqlite"] {
        for (shape, pipeline) in shapes {
            let name = format!("pipeline_{store}_{shape}");
            if !report.wants(&name) {
                continue;
            }
            let few = median(|| rate(store, FEW, Work::Pipeline(pipeline)))?;
            let many = median(|| rate(store, MANY, Work::Pipeline(pipeline)))?;
            let raw = if shape == "chain" { Work::InTurn } else { Work::AtOnce };
            let raw = median(|| rate(store, MANY, raw))?;
            report.line(&format!("{name}_{FEW}"), few, "nodes/s", raw);
            report.line(&format!("{name}_{MANY}"), many, "nodes/s", raw);
            report.line(&format!("{name}_growth"), few / many, "x", 1.0);
        }
    }
    Ok(())
}

fn node(number: usize) -> Node {
    Node::new(format!("n{number}"), "noop")
}

fn independent(nodes: usize) -> Pipeline {
    (0..nodes).map(node).fold(Pipeline::new("independent"), Pipeline::node)
}

fn chain(nodes: usize) -> Pipeline {
    let after = |number: usize| node(number).after(format!("n{}", number - 1));
    (1..nodes).map(after).fold(Pipeline::new("chain").node(node(0)), Pipeline::node)
}

fn fan_in(nodes: usize) -> Pipeline {
    let last = node(nodes).depends_on((1..nodes).map(|number| format!("n{number}")));
    (1..nodes).map(node).fold(Pipeline::new("fan_in"), Pipeline::node).node(last)
}

fn median(run: impl Fn() -> Result<f64, Anything>) -> Result<f64, Anything> {
    let mut rates = (0..ROUNDS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    rates.sort_by(f64::total_cmp);
    Ok(rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN))
}

/// Nodes, or tasks, per second.
fn rate(store: &str, nodes: usize, work: Work) -> Result<f64, Anything> {
    if store == "memory" {
        return run(Arc::new(InMemoryStore::new()), nodes, work);
    }
    let folder = tempfile::tempdir()?;
    run(Arc::new(open(&folder.path().join("bench.db"))?), nodes, work)
}

fn open(path: &Path) -> Result<SqliteStore, Anything> {
    Ok(SqliteStore::open(path, Options::default())?)
}

fn run(store: Arc<dyn TaskStore>, nodes: usize, work: Work) -> Result<f64, Anything> {
    let controller = Controller::builder()
        .store(store)
        .max_parallel(64)
        .register(TaskDefinition::new("noop", |_: &TaskContext, ()| Ok::<_, TaskError>(())))
        .build()?;
    let mut since = Instant::now();
    match work {
        Work::Pipeline(shape) => {
            let pipeline = shape(nodes);
            since = Instant::now();
            let outcome = pipeline.start(&controller)?.wait(None)?;
            if !outcome.ok() || outcome.nodes.len() != nodes {
                return Err(format!("the run ended {}", outcome.status).into());
            }
        }
        Work::InTurn => {
            for _ in 0..nodes {
                controller.submit(Submit::new("noop"))?.wait(None)?;
            }
        }
        Work::AtOnce => {
            for run in controller.submit_many((0..nodes).map(|_| Submit::new("noop"))) {
                run?;
            }
            controller.wait_all(None)?;
        }
    }
    Ok(nodes as f64 / since.elapsed().as_secs_f64())
}
