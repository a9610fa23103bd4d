//! The bodies that the cases launch. They keep nothing in memory that a case would look at, so they may run in any
//! process.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use chongming_core::{LogLevel, TaskContext, TaskDefinition, TaskError, Value};

use super::threads::sign;

/// What a body says to its case: that it has come, or made a step.
pub(super) const WORD: &[u8] = b".";

/// Every body of the suite. A program in which an executor runs them registers them all.
#[must_use]
pub fn definitions() -> Vec<TaskDefinition> {
    vec![
        // What it was given.
        TaskDefinition::new("contract.echo", |_: &TaskContext, args: Value| {
            Ok::<_, TaskError>(args)
        }),
        TaskDefinition::new("contract.about", |ctx: &TaskContext, (): ()| Ok(about(ctx))),
        TaskDefinition::new("contract.number", |_: &TaskContext, number: u32| {
            Ok::<_, TaskError>(number)
        }),
        // How it ends.
        TaskDefinition::new("contract.error", |_: &TaskContext, message: String| {
            Err::<(), _>(TaskError::new(message))
        }),
        TaskDefinition::new("contract.permanent_error", |_: &TaskContext, message: String| {
            Err::<(), _>(TaskError::permanent(message))
        }),
        TaskDefinition::new("contract.panic", |_: &TaskContext, message: String| -> Nothing {
            // As a panic does, but without the hook, which would print it.
            std::panic::resume_unwind(Box::new(message))
        }),
        TaskDefinition::new("contract.nan", |_: &TaskContext, (): ()| {
            Ok::<_, TaskError>(Value::List(vec![Value::Float(f64::NAN)]))
        }),
        TaskDefinition::new("contract.nested", |_: &TaskContext, depth: u32| {
            let nest = |inner, _| Value::List(vec![inner]);
            Ok::<_, TaskError>((0..depth).fold(Value::Null, nest))
        }),
        TaskDefinition::new("contract.crash", |_: &TaskContext, (): ()| -> Nothing {
            std::process::abort()
        }),
        // What it tells.
        TaskDefinition::new("contract.progress", progress),
        TaskDefinition::new("contract.heartbeat", |ctx: &TaskContext, (): ()| {
            ctx.heartbeat();
            Ok::<_, TaskError>(())
        }),
        TaskDefinition::new("contract.checkpoint", |ctx: &TaskContext, (): ()| ctx.checkpoint()),
        TaskDefinition::new("contract.log", log),
        TaskDefinition::new("contract.artifact", artifact),
        // How it obeys.
        TaskDefinition::new("contract.visit", |_: &TaskContext, port: u32| come(port).map(drop)),
        TaskDefinition::new("contract.steps", steps),
        TaskDefinition::new("contract.deaf", deaf),
        TaskDefinition::new("contract.look", look),
        TaskDefinition::new("contract.sleep", sleep),
        TaskDefinition::new_async("contract.async", turns),
        TaskDefinition::new("contract.threads", |_: &TaskContext, key: u64| {
            Ok::<_, TaskError>(sign(key) as u64)
        }),
    ]
}

type Nothing = Result<(), TaskError>;

fn about(ctx: &TaskContext) -> Value {
    let upstream = ctx.upstream().iter().map(|(name, value)| (name.to_string(), value.clone()));
    Value::Map(
        [
            ("task_id".to_owned(), Value::String(ctx.task_id().to_string())),
            ("name".to_owned(), Value::String(ctx.name().to_owned())),
            ("attempt".to_owned(), Value::Int(i64::from(ctx.attempt()))),
            ("upstream".to_owned(), Value::Map(upstream.collect())),
        ]
        .into(),
    )
}

fn progress(ctx: &TaskContext, last: u32) -> Nothing {
    for done in 1..last {
        ctx.progress(f64::from(done)).report();
    }
    let done = ctx.progress(f64::from(last) + 0.5).total(1e15);
    done.unit("Zeilen").message("同步 🎉").report();
    Ok(())
}

fn log(ctx: &TaskContext, lines: Vec<String>) -> Nothing {
    let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];
    for (line, level) in lines.iter().zip(levels.iter().cycle()) {
        ctx.log(*level, line)?;
    }
    Ok(())
}

/// Writes a file into its folder, where it has one; whether it has.
fn artifact(ctx: &TaskContext, text: String) -> Result<bool, TaskError> {
    let Ok(dir) = ctx.artifact_dir() else { return Ok(false) };
    fs::write(dir.join("artifact"), text)?;
    Ok(true)
}

/// An async body, all checkpoints.
async fn turns(ctx: TaskContext, (): ()) -> Nothing {
    loop {
        ctx.checkpoint_async().await?;
        std::thread::yield_now();
    }
}

fn come(port: u32) -> Result<TcpStream, TaskError> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, u16::try_from(port)?))?;
    stream.set_nodelay(true)?;
    stream.write_all(WORD)?;
    is_let_go(&mut stream)?;
    Ok(stream)
}

/// Waits until it is let go on; `false` when the case has closed the line.
fn is_let_go(stream: &mut TcpStream) -> io::Result<bool> {
    let mut word = [0_u8; WORD.len()];
    Ok(stream.read(&mut word)? > 0)
}

/// Makes one step for each time that it is let go, with a checkpoint before each.
fn steps(ctx: &TaskContext, port: u32) -> Result<u64, TaskError> {
    let mut stream = come(port)?;
    let mut steps = 0;
    while is_let_go(&mut stream)? {
        ctx.checkpoint()?;
        stream.write_all(WORD)?;
        steps += 1;
    }
    Ok(steps)
}

/// Hears nothing until its case closes the line.
fn deaf(_: &TaskContext, port: u32) -> Result<u32, TaskError> {
    let mut stream = come(port)?;
    while is_let_go(&mut stream)? {}
    Ok(port)
}

/// Looks whether it is to stop each time that it is let go, and answers once it is; then fails.
fn look(ctx: &TaskContext, port: u32) -> Nothing {
    let mut stream = come(port)?;
    while is_let_go(&mut stream)? {
        if ctx.is_stop_requested() {
            return Err(TaskError::new("ended by itself"));
        }
        stream.write_all(WORD)?;
    }
    Ok(())
}

/// Sleeps until it is told to stop, and says what it was told.
fn sleep(ctx: &TaskContext, port: u32) -> Nothing {
    let _stream = come(port)?;
    ctx.sleep(Duration::MAX).map_err(|error| TaskError::new(format!("told: {error}")))
}
