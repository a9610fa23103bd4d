//! The guardian knows of everything, also when it stood still, came late, or is not the only one.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::guardian::guardians_of;
use crate::support::{DEADLINE, TEST_PROGRAM, state, wait_until_gone};

/// More than a socket holds messages.
const MANY: usize = 450;

/// A shell's words: it becomes a process without a mark, after it has said its number.
const UNMARKED: &str = "echo pid $$; exec env -i sleep 1000";

/// A supervisor in another process, which takes orders.
struct Supervisor {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Supervisor {
    /// Starts this command `count` times.
    fn start(count: usize, argv: &[&str]) -> Self {
        Self::of(&mut Command::new(TEST_PROGRAM), count, argv)
    }

    fn of(program: &mut Command, count: usize, argv: &[&str]) -> Self {
        let mut process = program
            .args(["supervise", &count.to_string()])
            .args(argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn order(&mut self, orders: &str) {
        self.process.stdin.as_mut().unwrap().write_all(orders.as_bytes()).unwrap();
    }

    /// The numbers of the next lines `<word> <number>`.
    fn numbers(&mut self, word: &str, count: usize) -> Vec<i32> {
        let number = |line: String| line.strip_prefix(word)?.trim().parse().ok();
        let numbers = self.lines.by_ref().map_while(Result::ok).filter_map(number).take(count);
        let numbers: Vec<i32> = numbers.collect();
        assert_eq!(numbers.len(), count);
        numbers
    }

    fn guardian(&self) -> Option<i32> {
        guardians_of(self.process.id()).first().copied()
    }

    /// Waits until its guardian of the moment, which is not this one, knows of so many groups.
    fn wait_until_known(&self, groups: usize, not: Option<i32>) {
        let deadline = Instant::now() + DEADLINE;
        let mut known = None;
        while known != Some(groups) {
            assert!(Instant::now() < deadline, "of {groups} groups it knows {known:?}");
            known = self.guardian().filter(|pid| Some(*pid) != not).map(pidfds_of);
            std::thread::yield_now();
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A guardian has one for each group.
fn pidfds_of(process: i32) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
    let targets = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("pidfd")).count()
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

fn stop(process: i32) {
    signal(process, Signal::STOP);
    while state(process) != Some('T') {
        std::thread::yield_now();
    }
}

#[test]
fn what_was_started_while_the_guardian_stood_still_does_not_survive() {
    let mut supervisor = Supervisor::start(1, &["/bin/sh", "-c", UNMARKED]);
    let mut all = supervisor.numbers("pid", 1);
    let guardian = supervisor.guardian().unwrap();
    stop(guardian);
    supervisor.order(&"again\n".repeat(MANY));
    all.extend(supervisor.numbers("pid", MANY));
    // One that stood still for too long was replaced.
    let _ = kill_process(Pid::from_raw(guardian).unwrap(), Signal::CONT);
    supervisor.wait_until_known(MANY + 1, None);
    drop(supervisor);
    all.into_iter().for_each(wait_until_gone);
}

#[test]
fn a_guardian_forgets_what_ended_while_it_stood_still() {
    let mut supervisor = Supervisor::start(MANY, &["/bin/sh", "-c", UNMARKED]);
    supervisor.numbers("pid", MANY);
    supervisor.wait_until_known(MANY, None);
    let guardian = supervisor.guardian().unwrap();
    stop(guardian);
    supervisor.order("stop\n");
    let ended = supervisor.lines.by_ref().map_while(Result::ok);
    assert_eq!(ended.filter(|line| line.starts_with("Ended")).take(MANY).count(), MANY);
    signal(guardian, Signal::CONT);
    supervisor.wait_until_known(0, None);
    drop(supervisor);
    wait_until_gone(guardian);
}

#[test]
fn a_successor_learns_of_all_groups_however_late_it_listens() {
    let dir = tempfile::tempdir().unwrap();
    let hold = dir.path().join("hold");
    let mut command = Command::new(TEST_PROGRAM);
    command.env("TEST_HOLDS_GUARDIANS", &hold);
    let mut supervisor = Supervisor::of(&mut command, MANY, &["/bin/sh", "-c", UNMARKED]);
    let mut all = supervisor.numbers("pid", MANY);
    std::fs::write(&hold, "").unwrap();
    let first = supervisor.guardian();
    signal(first.unwrap(), Signal::KILL);
    supervisor.wait_until_known(0, first);
    // The reactor passes its output on when it has done with the successor.
    supervisor.order("again\n");
    all.extend(supervisor.numbers("pid", 1));
    std::fs::remove_file(&hold).unwrap();
    supervisor.wait_until_known(MANY + 1, first);
    drop(supervisor);
    all.into_iter().for_each(wait_until_gone);
}

#[test]
fn a_successor_learns_of_the_pipes() {
    let script = "setsid env -i sh -c 'echo pid $$; exec sleep 1000' & sleep 1000";
    let mut supervisor = Supervisor::start(1, &["/bin/sh", "-c", script]);
    let escaped = supervisor.numbers("pid", 1);
    let first = supervisor.guardian();
    signal(first.unwrap(), Signal::KILL);
    supervisor.wait_until_known(1, first);
    drop(supervisor);
    escaped.into_iter().for_each(wait_until_gone);
}

#[test]
fn the_guardian_of_a_supervisor_in_a_task_does_its_work() {
    let script = format!("echo inner $$; exec {TEST_PROGRAM} supervise 30 /bin/sh -c '{UNMARKED}'");
    for is_stopped in [false, true] {
        let mut outer = Supervisor::start(1, &["/bin/sh", "-c", &script]);
        let inner = outer.numbers("inner", 1);
        let all = outer.numbers("pid", 30);
        let guardian = guardians_of(inner[0].unsigned_abs())[0];
        if is_stopped {
            stop(guardian);
        }
        drop(outer);
        all.into_iter().chain(inner).for_each(wait_until_gone);
        wait_until_gone(guardian);
    }
}

#[test]
fn what_only_looks_like_a_guardian_does_not_survive() {
    let script = "CHONGMING_GUARDIAN=x setsid sh -c 'echo pid $$; exec sleep 1000' & sleep 1000";
    let mut supervisor = Supervisor::start(1, &["/bin/sh", "-c", script]);
    let escaped = supervisor.numbers("pid", 1);
    drop(supervisor);
    escaped.into_iter().for_each(wait_until_gone);
}
