//! Rust tasks that tests run in processes.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "test support")]

use std::collections::BTreeMap;
use std::time::Duration;

use chongming_core::{
    LogLevel, Param, RetryPolicy, TaskContext, TaskDefinition, TaskError, Timeout, Value,
};

type Done<T> = Result<T, TaskError>;

pub fn all() -> Vec<TaskDefinition> {
    vec![
        TaskDefinition::new("echo", |_: &TaskContext, value: Value| Ok::<_, TaskError>(value)),
        TaskDefinition::new_async("echo_async", |ctx: TaskContext, value: Value| async move {
            ctx.checkpoint_async().await?;
            Ok::<_, TaskError>(value)
        }),
        TaskDefinition::new("count", count)
            .tag("cpu")
            .param(Param::required("up_to").help("how far"))
            .retry(RetryPolicy::attempts(3))
            .timeout(Timeout { idle: Some(Duration::from_secs(60)), ..Timeout::default() })
            .priority(2),
        TaskDefinition::new("about", about),
        TaskDefinition::new("loop", endless),
        TaskDefinition::new("patient", |ctx: &TaskContext, ()| ctx.sleep(Duration::MAX)),
        TaskDefinition::new("stubborn", |ctx: &TaskContext, ()| {
            ctx.progress(1.0).report();
            loop {
                std::thread::park();
            }
            #[expect(unreachable_code, reason = "gives the closure its type")]
            Ok::<(), TaskError>(())
        }),
        TaskDefinition::new("flood", |ctx: &TaskContext, times: u32| {
            (0..times).for_each(|n| ctx.progress(f64::from(n)).message("on").report());
            Ok::<_, TaskError>(times)
        }),
        TaskDefinition::new("chatter", |ctx: &TaskContext, lines: u32| {
            for n in 0..lines {
                ctx.log(LogLevel::Info, &format!("line {n}"))?;
            }
            Ok::<_, TaskError>(())
        }),
        TaskDefinition::new("fail", fail),
        TaskDefinition::new("crash", crash),
    ]
}

fn count(ctx: &TaskContext, up_to: u32) -> Done<u32> {
    for n in 0..up_to {
        ctx.checkpoint()?;
        ctx.progress(f64::from(n)).total(f64::from(up_to)).unit("steps").report();
    }
    Ok(up_to)
}

/// What it knows of itself.
fn about(ctx: &TaskContext, args: Value) -> Done<Value> {
    println!("to stdout");
    eprintln!("to stderr");
    ctx.log(LogLevel::Warning, "to the log")?;
    let upstream = ctx.upstream().iter().map(|(node, value)| (node.to_string(), value.clone()));
    let entries = [
        ("id", ctx.task_id().as_str().into()),
        ("name", ctx.name().into()),
        ("attempt", Value::from(ctx.attempt())),
        ("args", args),
        ("fetched", Value::from(ctx.input::<i64>("fetch")?)),
        ("default", Value::from(ctx.input_or::<i64>("other", 5)?)),
        ("artifacts", ctx.artifact_dir()?.to_str().unwrap().into()),
        ("upstream", Value::Map(upstream.collect())),
    ];
    Ok(Value::Map(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<BTreeMap<_, _>>()))
}

/// Says how often it was at a checkpoint.
fn endless(ctx: &TaskContext, (): ()) -> Done<()> {
    println!("pid {}", std::process::id());
    for n in 0.. {
        ctx.checkpoint()?;
        ctx.progress(f64::from(n)).report();
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn fail(_: &TaskContext, how: String) -> Done<Value> {
    Ok(match how.as_str() {
        "error" => return Err(TaskError::new("it broke")),
        "permanent" => return Err(TaskError::permanent("it broke for good")),
        "long" => return Err(TaskError::new("x".repeat(20_000_000))),
        "panic" => panic!("boom"),
        "nan" => Value::Float(f64::NAN),
        "deep" => (0..129).fold(Value::Null, |inner, _| Value::List(vec![inner])),
        "long result" => Value::String("x".repeat(17 * 1024 * 1024)),
        other => return Err(TaskError::new(format!("cannot {other}"))),
    })
}

fn crash(_: &TaskContext, how: String) -> Done<()> {
    let own = rustix::process::getpid();
    match how.as_str() {
        "exit 0" => std::process::exit(0),
        "exit 3" => std::process::exit(3),
        "abort" => std::process::abort(),
        "overflow" => drop(overflow(0)),
        "kill" => rustix::process::kill_process(own, rustix::process::Signal::KILL)?,
        // The runtime's handler takes the first for a stack overflow that is none, and steps aside.
        "segv" => loop {
            rustix::process::kill_process(own, rustix::process::Signal::SEGV)?;
        },
        other => return Err(TaskError::new(format!("cannot {other}"))),
    }
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn overflow(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + page[7]
}
