//! Stops and kills.

use chongming_core::AttemptEnd;

use crate::support::{Rig, has_ended, is_gone, without_first_thread};

#[test]
fn a_stop_runs_the_handler_and_tells_its_code() {
    let rig = Rig::new();
    let attempt = rig.sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 1; done");
    rig.wait_output("ready");
    attempt.stop();
    assert_eq!(attempt.interrupted(), "exited with code 3");
    rig.wait_output("bye");
}

#[test]
fn a_stop_ends_what_has_no_handler() {
    let rig = Rig::new();
    let attempt = rig.sh("echo ready; exec sleep 1000");
    rig.wait_output("ready");
    attempt.stop();
    assert_eq!(attempt.interrupted(), "killed by signal 15 (SIGTERM)");
}

#[test]
fn exit_0_after_the_request_confirms_the_stop() {
    let rig = Rig::new();
    let attempt = rig.sh("trap 'exit 0' TERM; echo ready; while :; do sleep 1; done");
    rig.wait_output("ready");
    attempt.stop();
    assert_eq!(attempt.interrupted(), "exited with code 0");
}

#[test]
fn a_stubborn_tree_is_killed_with_its_grandchildren() {
    let rig = Rig::new();
    let attempt = rig
        .sh("trap '' TERM; sh -c 'sleep 1000 & echo grandchild $!; wait' & echo child $!; \
         echo leader $$; wait; sleep 1000");
    let pids = ["leader", "child", "grandchild"].map(|word| rig.number(word));
    attempt.stop();
    // It goes on: nothing but the kill ends it.
    let next = rig.sh("echo other");
    next.completed();
    assert!(pids.iter().all(|pid| !is_gone(*pid)));
    attempt.kill();
    assert_eq!(attempt.interrupted(), "killed by signal 9 (SIGKILL)");
    assert!(pids.iter().all(|pid| is_gone(*pid)), "a survivor");
}

#[test]
fn what_is_left_without_its_first_thread_ends_with_its_leader() {
    let rig = Rig::new();
    rig.sh(&without_first_thread("")).completed();
    assert!(has_ended(rig.number("pid")));
}

#[test]
fn a_stop_that_comes_during_the_launch_is_kept() {
    let rig = Rig::new();
    for _ in 0..20 {
        let attempt = rig.sh("exec sleep 1000");
        attempt.stop();
        assert!(matches!(attempt.ended(), AttemptEnd::Interrupted { .. }));
    }
}

#[test]
fn dropping_the_executor_kills_and_waits() {
    let rig = Rig::new();
    let attempts: Vec<_> = (0..3)
        .map(|n| rig.sh(&format!("trap '' TERM; echo pid{n} $$; sleep 1000 & wait; sleep 1000")))
        .collect();
    let pids: Vec<i32> = (0..3).map(|n| rig.number(&format!("pid{n}"))).collect();
    drop(rig);
    assert!(pids.iter().all(|pid| is_gone(*pid)));
    for attempt in attempts {
        assert_eq!(attempt.interrupted(), "killed by signal 9 (SIGKILL)");
        attempt.stop();
    }
}
