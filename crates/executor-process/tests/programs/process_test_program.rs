//! Plays the parts that this crate's tests need: guardian, supervisor, a task module, and programs that forgot
//! `init`.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use chongming_core::{AttemptSink, Executor, Launch, Report, Target, TaskId, Value};
use chongming_executor_process::{Command, ProcessExecutor, init_with};

#[path = "../support/tasks.rs"]
mod tasks;

fn main() {
    if let Some(file) = std::env::var_os("TEST_FORGETS_INIT") {
        forget_init(Path::new(&file));
        return;
    }
    match std::env::var("TEST_MODULE").as_deref() {
        Ok("hangs") => loop {
            std::thread::park();
        },
        Ok("floods") => flood(),
        _ => {}
    }
    init_with(tasks::all);
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("supervise") => supervise(arguments.next().unwrap().parse().unwrap(), arguments),
        other => panic!("unknown part {other:?}"),
    }
}

/// Starts the same command `count` times without a pause, says `launched`, and waits to be killed.
fn supervise(count: u32, argv: impl Iterator<Item = String>) {
    struct Loud;
    impl AttemptSink for Loud {
        fn report(&self, report: Report) {
            let _ = writeln!(std::io::stdout(), "{report:?}");
        }

        fn may_begin(&self) -> bool {
            true
        }
    }
    let echo = |bytes: &[u8]| {
        let _ = std::io::stdout().write_all(bytes);
    };
    let executor = ProcessExecutor::builder().echo(Arc::new(echo)).build().unwrap();
    let target = Target::External(Command::new(argv).into_target());
    for n in 0..count {
        executor.launch(Launch {
            task_id: TaskId::new(format!("t{n}")).unwrap(),
            name: "job".into(),
            attempt: 1,
            target: target.clone(),
            args: Value::Null,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Loud),
        });
    }
    loop {
        std::thread::park();
    }
}

/// Writes noise to where an answer is expected.
fn flood() {
    let mut answers = OpenOptions::new().write(true).open("/proc/self/fd/4").unwrap();
    while answers.write_all(&[b'x'; 65536]).is_ok() {}
}

/// Writes what came of making an executor.
fn forget_init(file: &Path) {
    let result = match ProcessExecutor::new() {
        Ok(_) => "made".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{result}\n").as_bytes()).unwrap();
}
