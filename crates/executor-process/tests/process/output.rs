//! Logs.

use chongming_core::{AttemptFiles, Report};

use crate::support::{Rig, launch, sh};

#[test]
fn both_streams_lie_in_one_log() {
    let rig = Rig::new();
    let attempt = rig.sh("echo one; echo two >&2; echo three");
    attempt.completed();
    let log = std::fs::read_to_string(rig.log()).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "three", "two"]);
    attempt.reports.get(|all| assert!(all.contains(&Report::Activity)));
}

#[test]
fn a_long_log_keeps_head_and_tail() {
    let rig = Rig::new();
    let mut command = sh("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done");
    command.max_log_bytes = 4096;
    rig.launch(command).completed();
    let log = std::fs::read_to_string(rig.log()).unwrap();
    assert!(log.len() <= 4096);
    assert!(log.starts_with("line 1\nline 2\n") && log.ends_with("line 1999\nline 2000\n"));
    assert_eq!(log.matches("bytes cut").count(), 1);
}

#[test]
fn a_full_disk_neither_blocks_nor_fails_the_command() {
    let rig = Rig::new();
    let files =
        AttemptFiles { log: "/dev/full".into(), artifact_dir: rig.dir.path().join("task/1") };
    let command = sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done");
    launch(&rig.executor, command, Some(files)).completed();
    rig.wait_output("line 20000");
    rig.wait_output("not kept in its log");
}

#[test]
fn a_link_in_place_of_the_log_fails_the_launch() {
    let rig = Rig::new();
    std::fs::create_dir(rig.dir.path().join("task")).unwrap();
    let other = rig.dir.path().join("other");
    std::os::unix::fs::symlink(&other, rig.log()).unwrap();
    let message = rig.sh("echo x").launch_failed();
    assert!(message.contains("1.log"), "{message}");
    assert!(!other.exists());
}

#[test]
fn binary_output_is_survived() {
    let rig = Rig::new();
    let failure = rig.sh("head -c 300000 /dev/urandom >&2; printf 'end\\0' >&2; exit 1").failed();
    assert!(failure.message.ends_with("end\u{FFFD}"), "{}", failure.message);
    assert!(failure.message.len() < 10_000);
    assert_eq!(std::fs::metadata(rig.log()).unwrap().len(), 300_004);
}
