//! How commands end by themselves.

use chongming_core::{FailureKind, Report};

use crate::support::{Rig, TEST_PROGRAM};

#[test]
fn exit_0_succeeds_with_null() {
    let rig = Rig::new();
    let attempt = rig.sh("echo hello");
    attempt.completed();
    attempt.reports.get(|all| assert_eq!(all.first(), Some(&Report::Launched)));
    assert_eq!(std::fs::read(rig.log()).unwrap(), b"hello\n");
}

#[test]
fn another_code_fails_with_the_tail_of_stderr() {
    let rig = Rig::new();
    let failure = rig.sh("echo noise; echo 'it broke' >&2; exit 7").failed();
    assert_eq!(failure.kind, FailureKind::ExitCode);
    assert_eq!(&*failure.message, "exited with code 7; stderr ends: it broke");
    assert!(failure.retryable);
}

#[test]
fn a_signal_that_is_not_ours_is_a_crash() {
    let failure = Rig::new().sh("kill -SEGV $$").failed();
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert_eq!(&*failure.message, "killed by signal 11 (SIGSEGV)");
}

#[test]
fn a_stop_that_comes_after_the_end_changes_nothing() {
    let rig = Rig::new();
    let attempt = rig.sh("exit 7");
    let failure = attempt.failed();
    attempt.stop();
    attempt.kill();
    assert_eq!(failure.kind, FailureKind::ExitCode);
    rig.sh("exit 0").completed();
    attempt.reports.get(|all| {
        assert_eq!(all.iter().filter(|r| matches!(r, Report::Ended(_))).count(), 1);
    });
}

#[test]
fn a_command_sees_its_task_and_nothing_of_ours() {
    let rig = Rig::new();
    let mut command = crate::support::sh(
        "echo $CHONGMING_TASK_ID/$CHONGMING_TASK_NAME/$CHONGMING_TASK_ATTEMPT/$MODE; \
         cd \"$CHONGMING_ARTIFACT_DIR\" && pwd; read x || echo no input; \
         for f in /proc/self/fd/*; do echo \"fd ${f##*/}\"; done; echo group $(ps -o pgid= -p $$) $$",
    );
    command.env = vec![("MODE".to_owned(), "full".to_owned())];
    rig.launch(command).completed();
    let output = rig.output.get(String::clone);
    assert!(output.starts_with("task/job/1/full\n"), "{output}");
    assert!(output.contains(&format!("{}\n", rig.dir.path().join("task/1").display())));
    assert!(output.contains("no input\n"));
    // 3 and 4 are the task protocol, the glob needs one more; what this test inherited without close-on-exec is not ours.
    let inherited = inheritable();
    let ours = output
        .lines()
        .filter_map(|line| line.strip_prefix("fd ")?.parse::<i32>().ok())
        .find(|number| *number > 5 && !inherited.contains(number));
    assert_eq!(ours, None, "{output}");
    let group = output.lines().find_map(|line| line.strip_prefix("group ")).unwrap();
    let numbers: Vec<&str> = group.split_whitespace().collect();
    assert_eq!(numbers[0], numbers[1], "the leader of its own group");
}

/// Descriptors of this process that every child of it gets.
fn inheritable() -> Vec<i32> {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    std::fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let info = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("0");
            u32::from_str_radix(flags.trim(), 8).unwrap() & CLOSE_ON_EXEC == 0
        })
        .map(|entry| entry.file_name().to_str().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn exit_codes_are_seen_although_a_parent_ignored_sigchld() {
    use std::io::{BufRead, BufReader};
    let script = format!("trap '' CHLD; exec {TEST_PROGRAM} supervise 1 /bin/sh -c 'exit 7'");
    let mut supervisor = std::process::Command::new("perl")
        .args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV", "/bin/sh", "-c", &script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(supervisor.stdout.take().unwrap()).lines();
    let end = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("Ended")));
    let end = end.unwrap().unwrap();
    assert!(end.contains("exited with code 7"), "{end}");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
}
