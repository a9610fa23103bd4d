//! `report`.

use std::process::Stdio;

use crate::support::{Sandbox, finish};

/// A folder with one task, which runs this script.
fn scripted(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("task.sh", script);
    sandbox.write("m.toml", "[tasks.t]\ncommand = [\"sh\", \"task.sh\"]\n");
    sandbox
}

#[test]
fn a_script_speaks_the_protocol_without_writing_json() {
    let sandbox = scripted(
        "report() { chongming-task report \"$@\" || exit 99; }\n\
         report hello; report checkpoint\n\
         report progress 3 --total 10 --unit files --message \"it's 30 \\\"%\\\"\"\n\
         report log --level warn 'careful, now'; report log plain\n\
         echo '{\"rows\": [1, 2.5, \"x\"]}' | report result -\n",
    );
    let task = sandbox.run_task("t", &["--json", "t"]).expect(0).json();
    assert_eq!(task["value"], serde_json::json!({"rows": [1, 2.5, "x"]}));
    assert_eq!(
        task["progress"],
        serde_json::json!({"done": 3, "total": 10, "unit": "files", "message": "it's 30 \"%\""})
    );
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    assert_eq!(log, "[warn] careful, now\n[info] plain\n");
}

#[test]
fn a_failure_is_the_scripts_own_word() {
    let sandbox = scripted("chongming-task report failure 'no such account' --permanent\n");
    let task = sandbox.run_task("t", &["--json", "t"]).expect(3).json();
    assert_eq!(
        task["failure"],
        serde_json::json!({"kind": "exception", "message": "no such account", "retryable": false})
    );
}

#[test]
fn reports_of_any_length_never_mix() {
    // Lines beyond what a pipe takes at once, from programs that write at the same time.
    let sandbox = scripted(
        "for n in 1 2 3 4 5 6; do\n\
         { head -c 300000 /dev/zero | tr '\\0' $n; } | chongming-task report result --text - &\n\
         chongming-task report log \"line $n\" &\n\
         done; wait\n",
    );
    let task = sandbox.run_task("t", &["--json", "t"]).expect(0).json();
    let value = task["value"].as_str().unwrap();
    assert_eq!(value.len(), 300_000);
    assert!(value.bytes().all(|byte| byte == value.as_bytes()[0]));
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = (1..=6).map(|n| format!("[info] line {n}")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_text_that_is_not_utf_8_is_passed_on_as_far_as_it_goes() {
    let sandbox = scripted("chongming-task report log \"$(printf 'caf\\351')\"\n");
    sandbox.run_task("t", &["t"]).expect(0);
    assert_eq!(sandbox.run(&["logs", "t"]).expect(0).out, "[info] caf\u{fffd}\n");
}

#[test]
fn outside_of_a_task_it_is_a_clear_error() {
    let sandbox = Sandbox::new();
    for (variable, word) in [
        (None, "CHONGMING_TASK_OUT is not set"),
        (Some("77"), "not open"),
        (Some("0"), "no pipe"),
        (Some("four"), "no number"),
    ] {
        let mut command = sandbox.command(&["report", "checkpoint"]);
        if let Some(variable) = variable {
            command.env("CHONGMING_TASK_OUT", variable);
        }
        let outcome = finish(command).expect(1);
        assert!(outcome.err.contains(word), "{variable:?}: {outcome:?}");
    }
}

#[test]
fn a_supervisor_that_is_gone_is_an_error_and_no_hang() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let writer = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    let pipe = std::os::unix::fs::MetadataExt::ino(&writer.metadata().unwrap()).to_string();
    let mut command = sandbox.command(&["report", "checkpoint"]);
    command.env("CHONGMING_TASK_OUT", "1").env("CHONGMING_TASK_PIPE", pipe);
    command.stdout(Stdio::from(writer));
    let outcome = finish(command).expect(1);
    assert!(outcome.err.contains("does not listen any more"), "{outcome:?}");
}

#[test]
fn another_pipe_than_the_supervisors_is_not_written_to() {
    let sandbox =
        scripted("chongming-task report result 1 4>&1 | cat; chongming-task report result 2\n");
    let outcome = sandbox.run_task("t", &["--json", "t"]).expect(0);
    assert_eq!(outcome.json()["value"], 2);
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    assert!(log.contains("another pipe") && !log.contains("\"result\""), "{log}");
    let script = "CHONGMING_TASK_OUT=1 chongming-task report checkpoint | cat";
    let outside = finish(sandbox.command_of("/bin/sh".as_ref(), &["-c", script]));
    assert!(outside.err.contains("another pipe") && outside.out.is_empty(), "{outside:?}");
}

#[test]
fn a_result_that_is_too_long_is_refused_where_it_is_said() {
    let sandbox = scripted(
        "head -c 17000000 /dev/zero | tr '\\0' x | chongming-task report result --text -\necho code $?\n",
    );
    sandbox.run_task("t", &["t"]).expect(0);
    let log = sandbox.run(&["logs", "t"]).expect(0).out;
    assert!(log.contains("code 1") && log.contains("16777216"), "{log}");
}
