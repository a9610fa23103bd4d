//! `logs`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::Sandbox;

const TALKER: &str = r#"
[tasks.talker]
command = ["sh", "-c", "echo attempt $CHONGMING_TASK_ATTEMPT; until test -e go$CHONGMING_TASK_ATTEMPT; do sleep 0.02; done; echo end; exit 1"]
retry = { max_attempts = 2 }
"#;

#[test]
fn the_output_of_an_attempt() {
    let sandbox = Sandbox::with_tasks();
    sandbox.write("m.toml", TALKER);
    sandbox.write("go1", "");
    sandbox.write("go2", "");
    sandbox.run_task("t", &["talker"]).expect(3);
    assert_eq!(sandbox.run(&["logs", "t"]).expect(0).out, "attempt 2\nend\n");
    assert_eq!(sandbox.run(&["logs", "t", "--attempt", "1"]).expect(0).out, "attempt 1\nend\n");
    assert!(sandbox.run(&["logs", "t", "--attempt", "3"]).expect(1).err.contains("latest is 2"));
    let json = sandbox.run(&["--json", "logs", "t"]).expect(0).json();
    assert_eq!((&json["attempt"], &json["output"]), (&2.into(), &"attempt 2\nend\n".into()));
    let whole = sandbox.run(&["logs", "-q", "-f", "t", "--attempt", "1"]).expect(0);
    assert_eq!(whole.out, "attempt 1\nend\n");
    assert!(sandbox.run(&["--json", "logs", "-f", "t"]).expect(1).err.contains("--follow"));
    std::fs::remove_dir_all(sandbox.path("tasks.db.artifacts")).unwrap();
    assert!(sandbox.run(&["logs", "t"]).expect(1).err.contains("tasks.db.artifacts/t/2.log"));
}

#[test]
fn follow_goes_on_across_attempts_until_the_end() {
    let sandbox = Sandbox::with_tasks();
    sandbox.write("m.toml", TALKER);
    let run = sandbox.start_task("t", &["talker"], "running");
    let mut command = sandbox.command(&["logs", "-f", "t"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "attempt 1");
    sandbox.write("go1", "");
    assert_eq!(lines.next().unwrap(), "end");
    assert_eq!(lines.next().unwrap(), "attempt 2");
    sandbox.write("go2", "");
    assert_eq!(lines.by_ref().collect::<Vec<_>>(), ["end"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    run.finish().expect(3);
}

#[test]
fn follow_ends_when_nobody_is_left_to_write() {
    let sandbox = Sandbox::with_tasks();
    sandbox.start_task("t", &["nap", "--lease-ttl", "200ms"], "running").crash();
    let outcome = sandbox.run(&["logs", "-f", "t"]).expect(0);
    assert!(outcome.err.contains("nobody holds it any more"), "{outcome:?}");
}

#[test]
fn bytes_of_any_kind_come_out_as_they_went_in() {
    let sandbox = Sandbox::new();
    let script = "printf 'a\\\\000b\\\\377\\\\303(\\\\r\\\\033[31m'";
    sandbox.write("m.toml", &format!("[tasks.t]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"));
    sandbox.run_task("t", &["-q", "t"]).expect(0);
    for args in [&["logs", "t"][..], &["logs", "-q", "-f", "t"]] {
        let output = sandbox.command(args).output().unwrap();
        assert_eq!(output.stdout, b"a\0b\xff\xc3(\r\x1b[31m", "{args:?}");
    }
    let json = sandbox.run(&["--json", "logs", "t"]).expect(0).json();
    assert_eq!(json["output"], "a\0b\u{fffd}\u{fffd}(\r\x1b[31m");
}

#[test]
fn an_attempt_that_was_never_launched_has_no_log_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox
        .write("m.toml", "[tasks.t]\ncommand = [\"./nonesuch\"]\nretry = { max_attempts = 2 }\n");
    sandbox.run_task("t", &["-q", "t"]).expect(3);
    for args in [&["logs", "t"][..], &["logs", "t", "--attempt", "1"]] {
        let outcome = sandbox.run(args).expect(1);
        assert!(outcome.err.contains("was never launched, so it has no log"), "{outcome:?}");
        assert!(!outcome.err.contains("deleted"), "{outcome:?}");
    }
    assert!(sandbox.run(&["logs", "t"]).err.contains("nonesuch"));
    assert_eq!(sandbox.run(&["logs", "-f", "t"]).expect(0).out, "");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("t", &["ok"]).expect(0);
    let log = sandbox.path("tasks.db.artifacts/t/1.log");
    for put in ["mkfifo", "mkdir", "ln -s /dev/zero"] {
        let replace = format!("rm -rf {0}; {put} {0}", log.display());
        assert!(Command::new("sh").args(["-c", &replace]).status().unwrap().success());
        for args in [&["logs", "t"][..], &["--json", "logs", "t"], &["logs", "-f", "t"]] {
            let outcome = sandbox.run(args).expect(1);
            assert!(outcome.err.contains("t/1.log: it is not a regular file"), "{outcome:?}");
            assert_eq!(outcome.out, "");
        }
    }
}
