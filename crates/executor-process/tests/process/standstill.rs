//! Much time passes between the answer that an attempt may begin and the start of its child.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::{AttemptEnd, AttemptSink, Report, Signal};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{
    Attempt, DEADLINE, Rig, Sink, TEST_PROGRAM, Watched, bearers_of, launch_to, sh, state,
    wait_until_gone,
};

/// Longer than an answer is good for.
const LATE: Duration = Duration::from_millis(100);

/// Answers late that the attempt may begin, and once more as it is told, given what is in the command's arguments.
struct Late<F> {
    reports: Sink,
    mark: String,
    was_asked: AtomicBool,
    again: F,
}

impl<F: Fn(&str) -> bool + Send + Sync> AttemptSink for Late<F> {
    fn report(&self, report: Report) {
        self.reports.report(report);
    }

    fn may_begin(&self) -> bool {
        if !self.was_asked.swap(true, Ordering::SeqCst) {
            thread::sleep(LATE);
            return true;
        }
        (self.again)(&self.mark)
    }
}

/// Waits until a process with this in its arguments is stopped.
fn wait_until_held(mark: &str) -> i32 {
    let limit = Instant::now() + DEADLINE;
    loop {
        if let Some(pid) = bearers_of(mark).find(|pid| state(*pid) == Some('T')) {
            return pid;
        }
        assert!(Instant::now() < limit, "nothing with {mark} is held");
        thread::yield_now();
    }
}

/// A script that waits for two lines, without a process of its own, and where they are written.
fn waiting(rig: &Rig) -> (String, File) {
    let fifo = rig.dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let lines = File::options().read(true).write(true).open(&fifo).unwrap();
    let script = "read line; echo second $$; read line; exit 0";
    (format!("echo first $$; {{ {script}; }} < {}", fifo.display()), lines)
}

fn launch_late<F>(rig: &Rig, script: &str, again: F) -> Attempt
where
    F: Fn(&str) -> bool + Send + Sync + 'static,
{
    let mark = format!("late-{}", rig.dir.path().display());
    let script = format!("# {mark}\n{script}");
    let reports = Arc::new(Watched::new(Vec::new()));
    let was_asked = AtomicBool::new(false);
    let sink = Late { reports: Sink(Arc::clone(&reports)), mark, was_asked, again };
    let files = rig.files(1);
    launch_to(&rig.executor, sh(&script), Some(files), Arc::new(sink), reports)
}

#[test]
fn what_may_not_begin_any_more_is_as_if_it_had_never_been_launched() {
    let no: fn() -> bool = || false;
    for again in [no, || panic!("a test's")] {
        let rig = Rig::new();
        let held = Arc::new(Watched::new(None));
        let seen = Arc::clone(&held);
        let (script, _lines) = waiting(&rig);
        let attempt = launch_late(&rig, &script, move |mark| {
            let pid = wait_until_held(mark);
            seen.change(|seen| *seen = Some(pid));
            again()
        });
        assert!(attempt.interrupted().contains("before it was launched"));
        let interrupted = |report: &Report| {
            matches!(report, Report::Ended(AttemptEnd::Interrupted { message: Some(_) }))
        };
        attempt.reports.get(|all| assert!(all.len() == 1 && interrupted(&all[0]), "{all:?}"));
        let process = format!("/proc/{}", held.get(|pid| pid.unwrap()));
        assert!(!Path::new(&process).exists(), "not even a zombie is left");
        assert!(!rig.log().exists() && !rig.dir.path().join("task/1").exists());
    }
}

#[test]
fn what_still_may_goes_on_as_if_nothing_had_been() {
    let rig = Rig::new();
    let (script, mut lines) = waiting(&rig);
    let attempt = launch_late(&rig, &script, |mark| wait_until_held(mark) > 0);
    attempt.launched();
    lines.write_all(b"go\n").unwrap();
    let leader = rig.number("second");
    for epoch in 1..=2 {
        attempt.carrier.signal(Signal::Pause { epoch });
        attempt.paused(epoch);
        assert_eq!(state(leader), Some('T'));
        attempt.carrier.signal(Signal::Resume);
    }
    lines.write_all(b"go\n").unwrap();
    attempt.completed();
    let log = std::fs::read_to_string(rig.log()).unwrap();
    assert_eq!(log, format!("first {leader}\nsecond {leader}\n"));
}

#[test]
fn what_is_asked_for_while_it_is_held_comes_after() {
    let rig = Rig::new();
    let held = Arc::new(Watched::new(false));
    let asked_for = Arc::new(Watched::new(false));
    let (seen, told) = (Arc::clone(&held), Arc::clone(&asked_for));
    // The shell stays, since its arguments bear the mark.
    let attempt = launch_late(&rig, "echo leader $$; sleep 1000; exit 0", move |mark| {
        wait_until_held(mark);
        seen.change(|held| *held = true);
        told.wait("the pause", |told| told.then_some(true))
    });
    held.wait("the child", |held| held.then_some(()));
    attempt.carrier.signal(Signal::Pause { epoch: 1 });
    asked_for.change(|told| *told = true);
    attempt.paused(1);
    attempt.carrier.signal(Signal::Resume);
    rig.number("leader");
    attempt.stop();
    assert_eq!(attempt.interrupted(), "killed by signal 15 (SIGTERM)");
}

#[test]
fn a_supervisor_that_is_killed_meanwhile_leaves_nothing_behind() {
    let mark = format!("orphan-{}", std::process::id());
    let script = format!("# {mark}\nsleep 1000; :");
    let mut supervisor = Command::new(TEST_PROGRAM)
        .args(["supervise", "1", "/bin/sh", "-c", &script])
        .env("TEST_ANSWERS_LATE", LATE.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let held = wait_until_held(&mark);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_until_gone(held);
}
