//! What runs as another user, whom a supervisor that is not root may not signal. Only root can set that up.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::support::{TEST_PROGRAM, is_gone};

/// `nobody`.
const USER: u32 = 65534;

/// A supervisor that runs as a user of its own, in a folder that everybody may enter.
struct Stage {
    supervisor: Child,
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    /// Processes that it cannot end.
    left: Vec<i32>,
    _dir: TempDir,
}

impl Stage {
    /// It runs, so many times, the script that `script` makes of the path of a program that runs as root. Nothing, with a line on
    /// stderr, where that cannot be had.
    fn set(test: &str, count: &str, script: impl FnOnce(&str) -> String) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        if let Some(why) = obstacle(dir.path()) {
            let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
            return None;
        }
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let program = install(dir.path(), "supervisor", "755");
        let root = install(dir.path(), "root", "4755");
        let mut supervisor = Command::new(program)
            .args(["supervise", count, "/bin/sh", "-c", &script(root.to_str().unwrap())])
            .env("TEST_ADOPTS_ORPHANS", "yes")
            .current_dir(dir.path())
            .uid(USER)
            .gid(USER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = supervisor.stdin.take().unwrap();
        let said = BufReader::new(supervisor.stdout.take().unwrap()).lines();
        Some(Self { supervisor, orders, said, left: Vec::new(), _dir: dir })
    }

    fn order(&mut self, what: &str) {
        writeln!(self.orders, "{what}").unwrap();
    }

    /// The rest of the next line that begins so.
    fn hear(&mut self, beginning: &str) -> String {
        let mut lines = self.said.by_ref().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned)).unwrap()
    }

    /// Waits until a process that runs as root says its number.
    fn pid(&mut self) -> i32 {
        let pid = self.hear("root ").parse().unwrap();
        self.left.push(pid);
        pid
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for pid in &self.left {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

/// Why there can be no such supervisor here.
fn obstacle(dir: &Path) -> Option<String> {
    if !geteuid().is_root() {
        return Some("only root can start a program as another user".to_owned());
    }
    if statvfs(dir).unwrap().f_flag.contains(StatVfsMountFlags::NOSUID) {
        return Some(format!("{} is mounted nosuid; set TMPDIR", dir.display()));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    if status.lines().any(|line| line == "NoNewPrivs:\t1") {
        return Some("no program may gain privileges here (no_new_privs)".to_owned());
    }
    None
}

/// Copies the test program. Another process writes it: a child of another test could hold a file open that this
/// one has written, and then it cannot be run.
fn install(dir: &Path, name: &str, mode: &str) -> PathBuf {
    let path = dir.join(name);
    let status = Command::new("install").args(["-m", mode, TEST_PROGRAM]).arg(&path).status();
    assert!(status.unwrap().success());
    path
}

/// A script that starts this as root in the background, with an ended child of the supervisor's user beside it.
fn beside(root: &str, before: &str) -> String {
    format!("{root} become-root {before} /bin/sh -c 'echo root $$; exec sleep 1000' & wait")
}

/// The end that is told of what was stopped.
fn end_with(survivor: i32) -> String {
    format!(
        "(Unkillable {{ message: \"killed by signal 15 (SIGTERM), but what runs as another user could not be ended \
         and goes on: process {survivor}\" }})"
    )
}

#[test]
fn a_stop_that_leaves_another_users_part_of_the_group_has_not_ended_it() {
    let Some(mut stage) = Stage::set(
        "a_stop_that_leaves_another_users_part_of_the_group_has_not_ended_it",
        "1",
        |root| beside(root, ""),
    ) else {
        return;
    };
    let survivor = stage.pid();
    stage.order("stop");
    assert_eq!(stage.hear("Ended"), end_with(survivor));
    assert!(!is_gone(survivor));
}

#[test]
fn a_command_that_is_another_users_itself_is_told_a_second_after_the_kill() {
    let Some(mut stage) = Stage::set(
        "a_command_that_is_another_users_itself_is_told_a_second_after_the_kill",
        "1",
        |root| format!("exec {root} become-root /bin/sh -c 'echo root $$; exec sleep 1000'"),
    ) else {
        return;
    };
    let end = |leader: i32| {
        format!(
            "(Unkillable {{ message: \"what runs as another user could not be ended and goes on: process {leader}\" }})"
        )
    };
    let leader = stage.pid();
    stage.order("stop");
    stage.order("kill");
    assert_eq!(stage.hear("Ended"), end(leader));
    assert!(!is_gone(leader));
    // It is killed once more with the next, and says nothing more.
    stage.order("again");
    let next = stage.pid();
    stage.order("stop");
    stage.order("kill");
    assert_eq!(stage.hear("Ended"), end(next));
}

#[test]
fn what_left_the_group_as_well_is_told_once() {
    let Some(mut stage) = Stage::set("what_left_the_group_as_well_is_told_once", "1", |root| {
        beside(root, "/usr/bin/setsid")
    }) else {
        return;
    };
    let first = stage.pid();
    stage.order("stop");
    assert_eq!(stage.hear("Ended"), end_with(first));
    assert!(!is_gone(first));
    // It goes on beside the next, and is none of its.
    stage.order("again");
    let second = stage.pid();
    stage.order("stop");
    assert_eq!(stage.hear("Ended"), end_with(second));
    assert!(!is_gone(first) && !is_gone(second));
}

#[test]
fn each_of_several_is_told_its_own() {
    let Some(mut stage) =
        Stage::set("each_of_several_is_told_its_own", "2", |root| beside(root, "/usr/bin/setsid"))
    else {
        return;
    };
    let survivors = [stage.pid(), stage.pid()];
    stage.order("stop");
    let mut ends = [stage.hear("Ended"), stage.hear("Ended")];
    let mut expected = survivors.map(end_with);
    ends.sort();
    expected.sort();
    assert_eq!(ends, expected);
}
