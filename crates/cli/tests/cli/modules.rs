//! Task modules that are executables, and programs with tasks of their own.

use serde_json::json;

use crate::support::{Outcome, Sandbox, example, finish, wait_for};

/// A folder in which the example is `./own_tasks`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_tasks();
    std::os::unix::fs::symlink(example("own_tasks"), sandbox.path("own_tasks")).unwrap();
    sandbox
}

fn run(sandbox: &Sandbox, id: &str, args: &[&str]) -> Outcome {
    sandbox.run(&[&["--json", "run", "--tasks", "./own_tasks", "--id", id], args].concat())
}

/// The same, by the program itself.
fn own(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    finish(sandbox.command_of(&sandbox.path("own_tasks"), args))
}

#[test]
fn an_executable_lists_its_tasks() {
    let sandbox = sandbox();
    for outcome in [
        sandbox.run(&["--json", "tasks", "--tasks", "./own_tasks"]),
        own(&sandbox, &["--json", "tasks"]),
    ] {
        assert_eq!(
            outcome.expect(0).json(),
            json!([
                {
                    "name": "count", "tags": ["demo"], "bucket_key": null, "priority": 0,
                    "max_attempts": 3, "command": null,
                    "params": [
                        {"name": "up_to", "required": true, "default": null, "help": "how far to count"},
                        {"name": "step_ms", "required": false, "default": 0, "help": null},
                    ],
                },
                {
                    "name": "half", "params": [], "tags": [], "bucket_key": null, "priority": 0,
                    "max_attempts": 1, "command": null,
                },
            ])
        );
    }
    let table = sandbox.run(&["tasks", "--tasks", "./own_tasks"]).expect(0).out;
    assert_eq!(
        table,
        "NAME   PARAMS           TAGS\ncount  up_to step_ms=0  demo\nhalf   -                -\n"
    );
}

#[test]
fn its_tasks_run_with_arguments_of_their_types() {
    let sandbox = sandbox();
    let task = run(&sandbox, "t", &["count", "--arg", "up_to=3", "--bucket-key", "tenant-A"]);
    let task = task.expect(0).json();
    assert_eq!(
        (&task["value"], &task["max_attempts"], &task["bucket"]),
        (&3.into(), &3.into(), &7.into())
    );
    assert_eq!(task["tags"], json!(["demo"]));
    assert_eq!(task["progress"]["done"], 3);
    let task = run(&sandbox, "u", &["count", "--args-json", r#"{"up_to": 2, "step_ms": 1}"#]);
    assert_eq!(task.expect(0).json()["value"], 2);
    let task = run(&sandbox, "v", &["half", "--args-json", "84"]).expect(0).json();
    assert_eq!(task["value"], 42);
    let task = run(&sandbox, "w", &["half", "--args-json", "3"]).expect(3).json();
    assert_eq!(
        task["failure"],
        json!({"kind": "exception", "message": "3 is odd", "retryable": false})
    );
    // Text where a number is wanted is the task's failure: it alone knows its types.
    let task = run(&sandbox, "x", &["count", "--arg", "up_to=many"]).expect(3).json();
    assert_eq!(task["status"], "failed");
}

#[test]
fn a_program_with_tasks_of_its_own_is_the_whole_command_line() {
    let sandbox = sandbox();
    let task = own(&sandbox, &["--json", "run", "count", "--arg", "up_to=3", "--id", "t"]);
    assert_eq!(task.expect(0).json()["value"], 3);
    assert_eq!(own(&sandbox, &["--json", "status", "t"]).expect(0).json()["value"], 3);
    own(&sandbox, &["run", "--tasks", "m.toml", "ok"]).expect(0);
    let near = own(&sandbox, &["run", "cuont"]).expect(1);
    assert!(near.err.contains("did you mean `count`?"), "{near:?}");
    let none = own(&sandbox, &["pipeline", "nightly"]).expect(1);
    assert!(none.err.contains("no pipeline") && none.err.contains("--tasks"), "{none:?}");
    let help = own(&sandbox, &["run", "--help"]).expect(0);
    assert!(help.out.contains("own_tasks run"), "{help:?}");
}

#[test]
fn its_tasks_are_paused_and_stopped_from_outside() {
    let sandbox = sandbox();
    let running = sandbox.start(&[
        "run",
        "--tasks",
        "./own_tasks",
        "--id",
        "t",
        "count",
        "--arg",
        "up_to=1000000",
        "--arg",
        "step_ms=1",
    ]);
    wait_for("progress", || {
        let outcome = sandbox.run(&["--json", "status", "t"]);
        outcome.code != Some(1) && !outcome.json()["progress"].is_null()
    });
    sandbox.run(&["pause", "t", "--wait", "60s"]).expect(0);
    sandbox.run(&["resume", "t", "--wait", "60s"]).expect(0);
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    running.finish().expect(3);
    assert_eq!(sandbox.status("t")["status"], "stopped");
}

#[test]
fn what_is_wrong_with_a_module_is_told_before_a_database_is_made() {
    let sandbox = sandbox();
    let mut cases = vec![
        (vec!["--tasks", "./own_tasks", "cuont"], "did you mean `count`?"),
        (vec!["--tasks", "./own_tasks", "count"], "needs the argument `up_to`"),
        (vec!["--tasks", "./own_tasks", "count", "--arg", "upto=1"], "did you mean `up_to`?"),
        (
            vec!["--tasks", "./own_tasks", "count", "--arg", "up_to=99999999999999999999"],
            "more than 64 bits",
        ),
        (vec!["--tasks", "./own_tasks", "half", "--args-json", "[1"], "--args-json"),
        (
            vec!["--tasks", "./own_tasks", "half", "--arg", "x=1", "--args-json", r#"{"x": 2}"#],
            "given twice",
        ),
        (vec!["--tasks", "./own_tasks", "half", "--arg", "x=1", "--args-json", "2"], "object"),
        (vec!["--tasks", "/bin/true", "x"], "/bin/true is no task module"),
        (vec!["--tasks", "./nonesuch", "x"], "./nonesuch"),
        (vec!["--tasks", ".", "x"], "directory"),
    ];
    for (args, word) in &mut cases {
        let outcome = sandbox.run(&[&["run"], args.as_slice()].concat()).expect(1);
        assert!(outcome.err.contains(*word), "{args:?}: {outcome:?}");
        assert!(!sandbox.path("tasks.db").exists(), "{args:?}");
    }
    let outcome = sandbox.run(&["tasks", "--tasks", "/bin/true"]).expect(1);
    assert!(outcome.err.contains("ends in .toml"), "{outcome:?}");
}

#[test]
fn a_manifest_on_a_disk_without_rights_is_still_one() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::with_tasks();
    let rights = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("m.toml"), rights).unwrap();
    sandbox.run_task("t", &["ok"]).expect(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_module_that_hangs_ends_with_whoever_asks_it() {
    use std::os::unix::fs::PermissionsExt;

    for signal in ["KILL", "INT"] {
        let sandbox = Sandbox::new();
        let module =
            sandbox.write("hangs", "#!/bin/sh\necho $$ > module.pid\nsleep 600\nsleep 600\n");
        std::fs::set_permissions(&module, std::fs::Permissions::from_mode(0o755)).unwrap();
        let asking = sandbox.start(&["tasks", "--tasks", "./hangs"]);
        let module = sandbox.until_written("module.pid");
        asking.signal(signal);
        crate::support::wait_for("the module to end", || !crate::support::is_alive(&module));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_asked_module_has_started_ends_with_it() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::new();
    let answer = r#"{"type":"tasks","protocol":1,"tasks":[]}"#;
    let text = format!(
        "#!/bin/sh\nsetsid sh -c 'echo $$ > left.pid; exec sleep 600' >/dev/null 2>&1 3<&- 4>&- &\n\
         until [ -s left.pid ]; do sleep 0.01; done\necho '{answer}' >&4\n"
    );
    let module = sandbox.write("leaves", &text);
    std::fs::set_permissions(&module, std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.run(&["tasks", "--tasks", "./leaves"]).expect(0);
    let left = sandbox.until_written("left.pid");
    crate::support::wait_for("what it started to end", || !crate::support::is_alive(&left));
}
