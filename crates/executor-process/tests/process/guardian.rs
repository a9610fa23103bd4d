//! The supervisor is killed, or forgets its part.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use chongming_executor_process::{ExecutorError, ProcessExecutor};

use crate::support::{
    Rig, TEST_PROGRAM, bearers_of, has_ended, is_gone, wait_until_gone, without_first_thread,
};

fn supervise(count: &str, script: &str) -> Child {
    Command::new(TEST_PROGRAM)
        .args(["supervise", count, "/bin/sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads lines `pid N` until there are `count`.
fn pids(supervisor: &mut Child, count: usize) -> Vec<i32> {
    let output = BufReader::new(supervisor.stdout.take().unwrap());
    output
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("pid ")?.trim().parse().ok())
        .take(count)
        .collect()
}

#[test]
fn nothing_survives_a_killed_supervisor() {
    let mut supervisor = supervise(
        "3",
        // Stubborn, with a child that lost the mark, one in a session of its own, and one that did both.
        "trap '' TERM HUP; env -i sh -c 'echo pid $$; exec sleep 1000' & \
         setsid sh -c 'echo pid $$; exec sleep 1000' & \
         setsid env -i sh -c 'echo pid $$; exec sleep 1000' & echo pid $$; sleep 1000; sleep 1000",
    );
    let pids = pids(&mut supervisor, 12);
    assert_eq!(pids.len(), 12);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    pids.into_iter().for_each(wait_until_gone);
}

#[test]
fn nothing_survives_that_goes_on_without_its_first_thread() {
    let scripts = ["", "setsid", "env -i", "setsid env -i"].map(without_first_thread);
    let script = format!("{} exec sleep 1000", scripts.concat());
    let mut supervisor = supervise("1", &script);
    let pids = pids(&mut supervisor, 4);
    assert!(pids.len() == 4 && !pids.iter().any(|pid| has_ended(*pid)));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    pids.into_iter().for_each(wait_until_gone);
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_amid_its_launches() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..10_u32 {
        let mark = format!("mark-{}-{round}", std::process::id());
        let script = format!("# {mark}\necho pid $$; exec sleep 1000");
        let mut supervisor = supervise("200", &script);
        // Kill it when the first few run, while the others are being started.
        let first = pids(&mut supervisor, round as usize % 5 + 1);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        first.into_iter().for_each(wait_until_gone);
        wait_for_no_guardian(&mark);
    }
    drop(dir);
}

/// Waits until no process with this in its arguments lives; each one is waited for by its pidfd.
fn wait_for_no_guardian(mark: &str) {
    while let Some(pid) = bearers_of(mark).next() {
        wait_until_gone(pid);
    }
}

#[test]
fn a_program_that_never_calls_init_is_told_so() {
    let error = ProcessExecutor::builder().program("/bin/true").build().map(drop).unwrap_err();
    assert!(matches!(error, ExecutorError::InitNotCalled { .. }));
    let message = error.to_string();
    assert!(message.contains("/bin/true") && message.contains("init()"), "{message}");
    let error = ProcessExecutor::builder().program("/no/such").build().map(drop).unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
}

#[test]
fn a_program_that_forgot_init_does_not_start_itself_endlessly() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("said");
    let status = Command::new(TEST_PROGRAM).env("TEST_FORGETS_INIT", &file).status().unwrap();
    assert!(status.success());
    let said = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("was started as a guardian"), "{said}");
    assert!(lines[1].contains("was run again as a guardian"), "{said}");
}

#[test]
fn a_guardian_that_dies_is_replaced() {
    let mut supervisor = supervise("1", "env -i sh -c 'echo pid $$; exec sleep 1000'; sleep 1000");
    let victims = pids(&mut supervisor, 1);
    let first = guardians_of(supervisor.id());
    assert_eq!(first.len(), 1);
    let pid = rustix::process::Pid::from_raw(first[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let second = loop {
        match guardians_of(supervisor.id()).into_iter().find(|pid| *pid != first[0]) {
            Some(pid) => break pid,
            None => std::thread::yield_now(),
        }
    };
    assert_ne!(first[0], second);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    victims.into_iter().for_each(wait_until_gone);
    wait_until_gone(second);
}

/// The guardians that this process has now.
pub(crate) fn guardians_of(parent: u32) -> Vec<i32> {
    std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .unwrap()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .chain(all_children(parent))
        .filter(|pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|arguments| arguments == b"chongming-guardian\0")
        })
        .collect::<std::collections::BTreeSet<i32>>()
        .into_iter()
        .collect()
}

/// Children that other threads than the first one started.
fn all_children(parent: u32) -> Vec<i32> {
    std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_guardian_is_deaf_to_the_terminal_and_leaves_with_its_executor() {
    use rustix::process::{Pid, Signal, kill_process};
    let mut supervisor = supervise("1", "echo pid $$; exec sleep 1000");
    pids(&mut supervisor, 1);
    let guardian = guardians_of(supervisor.id())[0];
    let id = Pid::from_raw(guardian).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill_process(id, signal).unwrap();
    }
    assert_eq!(rustix::process::getsid(Some(id)).unwrap(), id);
    assert!(!is_gone(guardian));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_until_gone(guardian);
    // There is nothing left to guard then, so that nobody waits for it, in whatever state it is.
    let rig = Rig::new();
    let guardian = guardians_of(std::process::id())[0];
    kill_process(Pid::from_raw(guardian).unwrap(), Signal::STOP).unwrap();
    drop(rig);
    assert!(is_gone(guardian));
}
