//! Thousands of launches cost nothing that stays. Alone in its program: it counts this process's things.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

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

#[test]
fn no_descriptor_and_no_zombie_stays() {
    let rig = Rig::new();
    let round = |count: usize| {
        let attempts: Vec<_> = (0..count)
            .map(|n| match n % 3 {
                0 => launch(&rig.executor, sh("echo out; echo err >&2"), None),
                1 => rig.launch(sh("exit 1")),
                _ => rig.launch(chongming_executor_process::Command::new(["/no/such"])),
            })
            .collect();
        for (n, attempt) in attempts.iter().enumerate() {
            match n % 3 {
                2 => drop(attempt.launch_failed()),
                _ => drop(attempt.ended()),
            }
        }
    };
    round(20);
    let (fds, kids) = (descriptors(), children());
    for _ in 0..27 {
        round(75);
    }
    assert_eq!((descriptors(), children()), (fds, kids));
    assert_eq!(kids, 1, "the guardian");
    drop(rig);
    assert_eq!(children(), 0);
}
