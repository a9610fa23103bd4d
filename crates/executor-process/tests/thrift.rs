//! Thousands of launches cost nothing that stays. Each alone in its program (as nextest runs them): they count this
//! process's things.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::path::Path;
use std::time::Duration;

use chongming_executor_process::Command;
use chongming_executor_process::module::list;
use support::{Rig, launch, sh};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Children of this process, guardian included.
fn children() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .map(|list| list.split_whitespace().count())
        .sum()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn ten_thousand_launches_leave_nothing() {
    let rig = Rig::new();
    let round = || {
        let launch = |_| launch(&rig.executor, Command::new(["/bin/true"]), None);
        let attempts: Vec<_> = (0..100).map(launch).collect();
        attempts.iter().for_each(support::Attempt::completed);
    };
    round();
    let before = (descriptors(), children(), threads());
    for _ in 0..100 {
        round();
    }
    assert_eq!((descriptors(), children(), threads()), before);
}

#[test]
fn no_descriptor_and_no_zombie_stays() {
    let rig = Rig::new();
    let round = |count: u32| {
        let with_files = |n, command| launch(&rig.executor, command, Some(rig.files(n)));
        let attempts: Vec<_> = (0..count)
            .map(|n| match n % 3 {
                0 => launch(&rig.executor, sh("echo out; echo err >&2"), None),
                1 => with_files(n, sh("exit 1")),
                _ => with_files(n, Command::new(["/no/such"])),
            })
            .collect();
        for (n, attempt) in (0..).zip(&attempts) {
            match n % 3 {
                2 => drop(attempt.launch_failed()),
                _ => drop(attempt.ended()),
            }
        }
    };
    round(20);
    let (fds, kids) = (descriptors(), children());
    // A file that is no program: there is nobody to ask, and nothing to guard.
    assert!(list(Path::new("/dev/null"), Duration::from_secs(10)).is_err());
    for _ in 0..27 {
        round(75);
    }
    assert_eq!((descriptors(), children()), (fds, kids));
    assert_eq!(kids, 1, "the guardian");
    drop(rig);
    assert_eq!(children(), 0);
}
