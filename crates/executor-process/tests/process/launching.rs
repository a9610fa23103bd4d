//! Launches that fail, and launches that are withdrawn.

use std::path::PathBuf;

use chongming_core::{AttemptEnd, AttemptFiles, Executor, Report, Target};
use chongming_executor_process::{Command, CommandTemplate};

use crate::support::{Rig, launch, sh};

#[test]
fn each_problem_names_its_path() {
    let rig = Rig::new();
    let dir = rig.dir.path().to_owned();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let no_format = script("no-format", "\u{1}\u{2}");
    let no_interpreter = script("no-interpreter", "#!/no/such/interpreter\n");
    let long = "x".repeat(4 * 1024 * 1024);
    for (argv, cwd, parts) in [
        (vec!["/no/such/program"], "/", ["\"/no/such/program\"", "does not exist"]),
        (vec!["no-such-program"], "/", ["\"no-such-program\"", "not found on PATH"]),
        (vec!["true"], "/no/such/dir", ["directory \"/no/such/dir\"", "does not exist"]),
        (vec!["true"], "/dev/null", ["directory \"/dev/null\"", "is not a directory"]),
        (vec!["/etc/passwd"], "/", ["\"/etc/passwd\"", "is not executable"]),
        (vec![no_format.as_str()], "/", ["no-format", "#!/bin/sh"]),
        (vec![no_interpreter.as_str()], "/", ["no-interpreter", "interpreter"]),
        (vec!["true", "a\0b"], "/", ["argument 1", "NUL"]),
        (vec!["true", long.as_str()], "/", ["/true", "too long"]),
        (vec![], "/", ["names no program", ""]),
    ] {
        let mut command = Command::new(argv);
        command.cwd = PathBuf::from(cwd);
        let message = rig.launch(command).launch_failed();
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
}

#[test]
fn what_no_other_attempt_can_launch_is_permanent() {
    let rig = Rig::new();
    let with = |name: &str, value: &str| {
        let mut command = Command::new(["true"]);
        command.env = vec![(name.to_owned(), value.to_owned())];
        command
    };
    let mut nowhere = Command::new(["/bin/true"]);
    nowhere.cwd = PathBuf::from("/a\0b");
    for (command, words, is_permanent) in [
        (Command::new(Vec::<String>::new()), "names no program", true),
        (Command::new([""]), "names no program", true),
        (Command::new(["true", "a\0b"]), "argument 1 of its command contains a NUL", true),
        (Command::new(["/a\0b"]), "argument 0 of its command contains a NUL", true),
        (with("", "x"), "cannot be the name", true),
        (with("A=B", "x"), "cannot be the name", true),
        (with("A\0B", "x"), "cannot be the name", true),
        (with("A", "x\0y"), "variable A contains a NUL", true),
        (with("CHONGMING_SUPERVISOR", "x"), "is reserved", true),
        (nowhere, "NUL", true),
        // The file may be there the next time.
        (Command::new(["/no/such/program"]), "does not exist", false),
        (Command::new(["no-such-program"]), "not found on PATH", false),
    ] {
        let failure = rig.launch(command).launch_failure();
        assert!(failure.message.contains(words), "{failure}");
        assert_eq!(failure.retryable, !is_permanent, "{failure}");
    }
}

#[test]
fn a_program_is_found_on_the_commands_own_path() {
    let rig = Rig::new();
    let mut command = Command::new(["true"]);
    command.env = vec![("PATH".to_owned(), "/no/such/folder".to_owned())];
    assert!(rig.launch(command.clone()).launch_failed().contains("/no/such/folder"));
    command.env = vec![("PATH".to_owned(), "/no/such/folder:/usr/bin:/bin".to_owned())];
    rig.launch(command).completed();
}

#[test]
fn a_program_with_a_slash_is_relative_to_the_working_directory() {
    let rig = Rig::new();
    let mut command = Command::new(["./bin/sh", "-c", "pwd"]);
    command.cwd = PathBuf::from("/usr");
    rig.launch(command).completed();
    rig.wait_output("/usr\n");
}

#[test]
fn a_log_that_cannot_be_made_fails_the_launch() {
    let rig = Rig::new();
    let files = AttemptFiles {
        log: PathBuf::from("/dev/null/task/1.log"),
        artifact_dir: PathBuf::from("/dev/null/task/1"),
    };
    let message = launch(&rig.executor, sh("true"), Some(files)).launch_failed();
    assert!(message.contains("/dev/null/task/1.log"), "{message}");
}

#[test]
fn a_template_makes_the_command_of_each_attempt() {
    let rig = Rig::new();
    let target = |template: CommandTemplate| Target::External(template.into_target());
    assert!(rig.executor.check(&target(CommandTemplate::new(|_| Err("no".into())))).is_ok());
    let other = Target::External(std::sync::Arc::new(7_u8));
    assert!(rig.executor.check(&other).is_err());
}

#[test]
fn what_is_stopped_before_its_launch_never_runs() {
    let rig = Rig::new();
    // Enough of them that some are still waiting when they are stopped.
    let marks = rig.dir.path().join("ran");
    std::fs::create_dir(&marks).unwrap();
    let attempts: Vec<_> = (0..40)
        .map(|n| {
            let mark = marks.join(n.to_string());
            let attempt =
                launch(&rig.executor, sh(&format!("trap '' TERM; touch {}", mark.display())), None);
            attempt.stop();
            (attempt, mark)
        })
        .collect();
    let mut unstarted = 0;
    for (attempt, mark) in attempts {
        let end = attempt.ended();
        let launched = attempt.reports.get(|all| all.contains(&Report::Launched));
        if !launched {
            unstarted += 1;
            assert!(!mark.exists());
            assert!(matches!(end, AttemptEnd::Interrupted { .. }), "{end:?}");
            assert_eq!(attempt.reports.get(Vec::len), 1);
        }
    }
    assert!(unstarted > 0);
}
