//! A program with tasks of its own is the whole command line, and a task module for others:
//!
//! ```sh
//! cargo run --example own_tasks -- run count --arg up_to=1000
//! chongming-task run --tasks target/debug/examples/own_tasks count --arg up_to=1000
//! ```
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use chongming_core::{Json, Param, RetryPolicy, TaskContext, TaskDefinition, TaskError};

#[derive(serde::Deserialize)]
struct Count {
    up_to: u32,
    step_ms: u64,
}

fn count(ctx: &TaskContext, Json(args): Json<Count>) -> Result<u32, TaskError> {
    for done in 0..args.up_to {
        ctx.sleep(Duration::from_millis(args.step_ms))?; // stops and pauses here
        ctx.progress(f64::from(done + 1)).total(f64::from(args.up_to)).report();
    }
    Ok(args.up_to)
}

fn half(_: &TaskContext, number: i64) -> Result<i64, TaskError> {
    if number % 2 == 0 {
        Ok(number / 2)
    } else {
        Err(TaskError::permanent(format!("{number} is odd")))
    }
}

fn tasks() -> [TaskDefinition; 2] {
    [
        TaskDefinition::new("count", count)
            .param(Param::required("up_to").help("how far to count"))
            .param(Param::optional("step_ms", 0))
            .retry(RetryPolicy::attempts(3))
            .tag("demo"),
        TaskDefinition::new("half", half),
    ]
}

fn main() -> ExitCode {
    chongming_task::main_with(tasks)
}
