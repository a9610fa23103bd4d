//! Processes that leave their group are reached where this process adopts orphans. Alone in its program: that
//! changes the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use chongming_core::Signal;
use chongming_executor_process::ProcessExecutorBuilder;
use support::{Rig, has_ended, is_gone, state, without_first_thread};

fn rig() -> Rig {
    Rig::with(ProcessExecutorBuilder::adopt_orphans)
}

/// Starts a process in a session of its own, waits until it has said `escaped` and its number, and goes on
/// with `rest`.
fn escape(rest: &str) -> String {
    format!(
        "cd \"$CHONGMING_ARTIFACT_DIR\"; mkfifo said; \
         setsid sh -c 'echo escaped $$; echo > said; exec sleep 1000' & read x < said; {rest}"
    )
}

#[test]
fn what_left_its_group_ends_before_a_normal_end_is_told() {
    let rig = rig();
    rig.sh(&escape("exit 0")).completed();
    assert!(is_gone(rig.number("escaped")));
}

#[test]
fn what_left_its_group_and_its_first_thread_ends_too() {
    let rig = rig();
    rig.sh(&without_first_thread("setsid")).completed();
    assert!(has_ended(rig.number("pid")));
}

#[test]
fn a_double_fork_that_ignores_sigterm_ends_too() {
    let rig = rig();
    let inner = "trap \"\" TERM HUP; echo escaped $(sh -c \"echo \\$PPID\"); echo > said; sleep 1000; sleep 1000";
    let script = format!(
        "cd \"$CHONGMING_ARTIFACT_DIR\"; mkfifo said; setsid sh -c '({inner}) &' & read x < said; exit 0"
    );
    rig.sh(&script).completed();
    assert!(is_gone(rig.number("escaped")));
}

#[test]
fn a_stop_reaches_what_timeout_started() {
    let rig = rig();
    let attempt = rig.sh("timeout 1000 sh -c 'trap \"echo cleaned; exit\" TERM; echo escaped $$; \
         while :; do sleep 0.01; done'; exit 0");
    let escaped = rig.number("escaped");
    attempt.stop();
    attempt.interrupted();
    assert!(is_gone(escaped));
    rig.wait_output("cleaned");
}

#[test]
fn a_pause_stops_what_left_its_group() {
    let rig = rig();
    let attempt = rig.sh(&escape("echo ready; while :; do sleep 0.01; done"));
    rig.wait_output("ready");
    let escaped = rig.number("escaped");
    for epoch in 1..=3 {
        attempt.carrier.signal(Signal::Pause { epoch });
        attempt.paused(epoch);
        // The signal was sent before the leader's stop was reported; its effect may take a moment.
        while state(escaped) != Some('T') {
            std::thread::yield_now();
        }
        attempt.carrier.signal(Signal::Resume);
    }
    attempt.kill();
    assert_eq!(attempt.interrupted(), "killed by signal 9 (SIGKILL)");
    assert!(is_gone(escaped));
}

#[test]
fn one_that_cleared_its_environment_is_reached_while_its_parents_live() {
    let rig = rig();
    let attempt = rig.sh(
        "env -i setsid -w sh -c 'trap \"\" TERM; echo escaped $$; while :; do sleep 0.01; done'; exit 0",
    );
    let escaped = rig.number("escaped");
    attempt.kill();
    attempt.interrupted();
    support::wait_until_gone(escaped);
}

#[test]
fn another_attempts_process_is_left_alone_and_so_is_the_hosts_own() {
    let rig = rig();
    let mut own = std::process::Command::new("true").spawn().unwrap();
    let one = rig.sh(&escape("echo ready; sleep 1000; exit 0"));
    rig.wait_output("ready");
    let escaped = rig.number("escaped");
    for _ in 0..20 {
        rig.sh("sh -c 'sleep 0 &'; exit 0").completed();
    }
    assert!(!is_gone(escaped));
    one.kill();
    one.interrupted();
    assert!(is_gone(escaped));
    assert!(own.wait().unwrap().success());
}

/// Starts a process that has neither its group nor its environment, and whose parents are gone, and that holds
/// nothing of its attempt but what `keeps` leaves it; goes on with `rest`.
fn vanish(keeps: &str, rest: &str) -> String {
    format!(
        "cd \"$CHONGMING_ARTIFACT_DIR\"; mkfifo said; \
         (env -i PATH=\"$PATH\" setsid sh -c 'echo vanished $$; \
         exec 0</dev/null 1>/dev/null 2>/dev/null 3<&- {keeps}; echo > said; exec sleep 1000' &); \
         read x < said; {rest}"
    )
}

#[test]
fn one_without_mark_and_parents_is_the_only_attempts() {
    let rig = rig();
    rig.sh(&vanish("4>&-", "exit 0")).completed();
    support::wait_until_gone(rig.number("vanished"));
    let attempt = rig.sh(&vanish("4>&-", "echo ready; sleep 1000; exit 0"));
    rig.wait_output("ready");
    attempt.stop();
    attempt.interrupted();
}

#[test]
fn one_without_mark_and_parents_is_known_by_the_pipe_that_it_holds() {
    let rig = rig();
    let other = rig.sh("echo other; sleep 1000; exit 0");
    rig.wait_output("other");
    rig.sh(&vanish("", "exit 0")).completed();
    support::wait_until_gone(rig.number("vanished"));
    other.kill();
    other.interrupted();
}

#[test]
fn one_that_may_be_any_attempts_is_told_and_ends_with_the_last() {
    let rig = rig();
    let other = rig.sh("echo other; sleep 1000; exit 0");
    rig.wait_output("other");
    let attempt = rig.sh(&vanish("4>&-", "echo ready; sleep 1000; exit 0"));
    rig.wait_output("ready");
    let vanished = rig.number("vanished");
    attempt.kill();
    let message = attempt.interrupted();
    assert!(message.contains(&format!("task is process {vanished}")), "{message}");
    assert!(!is_gone(vanished));
    other.kill();
    other.interrupted();
    support::wait_until_gone(vanished);
}

#[test]
fn one_that_was_met_while_its_parents_lived_is_known_afterwards() {
    let rig = rig();
    let other = rig.sh("echo other; sleep 1000; exit 0");
    rig.wait_output("other");
    let attempt = rig.sh("env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; echo met $$; \
         exec 0</dev/null 1>/dev/null 2>/dev/null 3<&- 4>&-; while :; do sleep 0.01; done' & wait");
    let met = rig.number("met");
    // Of the descriptors nothing tells whose it is.
    while std::fs::read_link(format!("/proc/{met}/fd/4")).is_ok() {
        std::thread::yield_now();
    }
    attempt.stop();
    assert_eq!(attempt.interrupted(), "killed by signal 15 (SIGTERM)");
    assert!(is_gone(met));
    other.kill();
    other.interrupted();
}
