//! What the leader leaves behind.

use crate::support::{Rig, is_gone, state};
use chongming_core::FailureKind;

#[test]
fn a_background_process_is_ended_before_the_end_is_told() {
    let rig = Rig::new();
    let attempt = rig.sh("sleep 1000 > /dev/null 2>&1 & echo left $!");
    attempt.completed();
    assert!(is_gone(rig.number("left")));
}

#[test]
fn one_that_holds_the_pipe_and_ignores_sigterm_is_killed() {
    let rig = Rig::new();
    let attempt = rig.sh("trap '' TERM; sleep 1000 & echo left $!; exit 5");
    let failure = attempt.failed();
    assert_eq!(failure.kind, FailureKind::ExitCode);
    assert!(is_gone(rig.number("left")));
}

// The kernel itself sends SIGHUP and SIGCONT when a suspended group loses the last tie to its session.
#[test]
fn a_suspended_one_is_continued_to_end() {
    let rig = Rig::new();
    let attempt = rig.sh("(trap 'echo cleaned; exit' TERM HUP; kill -STOP $(sh -c 'echo $PPID'); \
                          while :; do sleep 0.01; done) & echo left $!; \
                          until grep -q 'State:.T' /proc/$!/status; do sleep 0.01; done");
    attempt.completed();
    rig.wait_output("cleaned");
    assert!(is_gone(rig.number("left")));
}

#[test]
fn one_in_a_session_of_its_own_delays_nothing() {
    let rig = Rig::new();
    let file = rig.dir.path().join("escaped");
    let attempt = rig.sh(&format!(
        "setsid sh -c 'echo $$ > {0}; echo out; exec sleep 1000' & \
         until [ -s {0} ]; do sleep 0.01; done; exit 0",
        file.display()
    ));
    attempt.completed();
    let escaped: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(state(escaped).is_some(), "out of reach, as documented");
    let pid = rustix::process::Pid::from_raw(escaped).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
