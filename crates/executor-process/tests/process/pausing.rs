//! Pauses.

use chongming_core::Signal;

use crate::support::{Rig, state};

#[test]
fn a_pause_really_stops_the_whole_group_any_number_of_times() {
    let rig = Rig::new();
    let attempt = rig.sh("sh -c 'while :; do sleep 0.01; done' & echo child $!; echo leader $$; \
         while :; do sleep 0.01; done");
    let pids = [rig.number("leader"), rig.number("child")];
    for epoch in 1..=4 {
        attempt.carrier.signal(Signal::Pause { epoch });
        attempt.paused(epoch);
        assert_eq!(state(pids[0]), Some('T'));
        attempt.carrier.signal(Signal::Resume);
    }
    attempt.carrier.signal(Signal::Pause { epoch: 9 });
    attempt.paused(9);
    attempt.carrier.signal(Signal::Pause { epoch: 10 });
    attempt.paused(10);
    attempt.kill();
    assert_eq!(attempt.interrupted(), "killed by signal 9 (SIGKILL)");
}

#[test]
fn what_was_resumed_goes_on() {
    let rig = Rig::new();
    let fifo = rig.dir.path().join("fifo");
    rig.sh(&format!("mkfifo {}", fifo.display())).completed();
    let attempt = rig.sh(&format!("echo again $$; read line < {}; exit 0", fifo.display()));
    let pid = rig.number("again");
    attempt.carrier.signal(Signal::Pause { epoch: 1 });
    attempt.paused(1);
    assert_eq!(state(pid), Some('T'));
    attempt.carrier.signal(Signal::Resume);
    std::fs::write(&fifo, "go\n").unwrap();
    attempt.completed();
}

#[test]
fn a_stop_of_a_paused_command_runs_its_handler() {
    let rig = Rig::new();
    let attempt = rig.sh("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done");
    rig.wait_output("ready");
    attempt.carrier.signal(Signal::Pause { epoch: 1 });
    attempt.paused(1);
    attempt.stop();
    assert_eq!(attempt.interrupted(), "exited with code 4");
    rig.wait_output("bye");
}

#[test]
fn a_pause_that_comes_during_the_launch_is_kept() {
    let rig = Rig::new();
    let attempt = rig.sh("exec sleep 1000");
    attempt.carrier.signal(Signal::Pause { epoch: 1 });
    attempt.paused(1);
    attempt.kill();
    attempt.interrupted();
}
