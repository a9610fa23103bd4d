//! Plays the parts that this crate's tests need: guardian (held for as long as a file exists), supervisor, a task module, a program that becomes another
//! user's, and programs that forgot `init`.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chongming_core::{AttemptSink, Executor, Launch, Report, Signal, Target, TaskId, Value};
use chongming_executor_process::{Command, ProcessExecutor, init_with};

#[path = "../support/tasks.rs"]
mod tasks;

fn main() {
    if let Some(file) = std::env::var_os("TEST_FORGETS_INIT") {
        forget_init(Path::new(&file));
        return;
    }
    if let Some(file) = std::env::var_os("TEST_HOLDS_GUARDIANS")
        && std::env::var_os("CHONGMING_GUARDIAN").is_some()
    {
        while Path::new(&file).exists() {
            thread::yield_now();
        }
    }
    match std::env::var("TEST_MODULE").as_deref() {
        Ok("hangs") => loop {
            thread::park();
        },
        Ok("floods") => flood(),
        _ => {}
    }
    init_with(tasks::all);
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("supervise") => supervise(arguments.next().unwrap().parse().unwrap(), arguments),
        Some("become-root") => become_root(arguments),
        other => panic!("unknown part {other:?}"),
    }
}

/// Starts the same command `count` times without a pause, says what is reported, and waits to be killed. Meanwhile the
/// line `stop` stops all, and `again` starts the command once more. Told so, it adopts orphans, or answers late that an
/// attempt may begin, and never when asked again.
fn supervise(count: u32, argv: impl Iterator<Item = String>) {
    struct Loud {
        late: Option<Duration>,
        was_asked: AtomicBool,
    }
    impl AttemptSink for Loud {
        fn report(&self, report: Report) {
            let _ = writeln!(std::io::stdout(), "{report:?}");
        }

        fn may_begin(&self) -> bool {
            let was_asked = self.was_asked.swap(true, Ordering::SeqCst);
            match self.late {
                Some(_) if was_asked => loop {
                    thread::park();
                },
                Some(late) => thread::sleep(late),
                None => {}
            }
            true
        }
    }
    let late = std::env::var("TEST_ANSWERS_LATE").ok();
    let late = late.map(|ms| Duration::from_millis(ms.parse().unwrap()));
    let echo = |bytes: &[u8]| {
        let _ = std::io::stdout().write_all(bytes);
    };
    let mut builder = ProcessExecutor::builder().echo(Arc::new(echo));
    if std::env::var_os("TEST_ADOPTS_ORPHANS").is_some() {
        builder = builder.adopt_orphans();
    }
    let executor = builder.build().unwrap();
    let target = Target::External(Command::new(argv).into_target());
    let start = || {
        executor.launch(Launch {
            task_id: TaskId::new("t").unwrap(),
            name: "job".into(),
            attempt: 1,
            target: target.clone(),
            args: Value::Null,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Loud { late, was_asked: AtomicBool::new(false) }),
        })
    };
    let mut carriers: Vec<_> = (0..count).map(|_| start()).collect();
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "stop" => {
                let stop = Signal::Stop { reason: "test".into(), grace: Duration::from_secs(60) };
                carriers.iter().for_each(|carrier| carrier.signal(stop.clone()));
            }
            "kill" => carriers.iter().for_each(|carrier| carrier.signal(Signal::Kill)),
            "again" => carriers.push(start()),
            other => panic!("unknown order {other:?}"),
        }
    }
    loop {
        thread::park();
    }
}

/// Becomes this program with root as its real user as well, where this file is root's and runs as such. Leaves a child
/// of its own that has ended and that the starting user may signal.
#[expect(clippy::zombie_processes, reason = "that is the point")]
fn become_root(mut argv: impl Iterator<Item = String>) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let ended = std::process::Command::new("/bin/true").spawn().unwrap();
    let id = WaitId::Pid(Pid::from_raw(ended.id().try_into().unwrap()).unwrap());
    waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let program = argv.next().unwrap();
    panic!("{program}: {}", std::process::Command::new(&program).args(argv).uid(0).exec());
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
