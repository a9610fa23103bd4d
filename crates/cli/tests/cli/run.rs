//! `run`.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Sandbox, finish, is_alive};

#[test]
fn a_task_runs_to_its_end_and_its_output_goes_to_stderr() {
    let sandbox = Sandbox::with_tasks();
    let outcome = sandbox.run_task("t", &["ok"]).expect(0);
    assert!(outcome.out.starts_with("t succeeded after "), "{outcome:?}");
    assert_eq!(outcome.err, "all is well\n");
    let outcome = sandbox.run_task("u", &["-q", "ok"]).expect(0);
    assert_eq!(outcome.err, "");
    let outcome = sandbox.run_task("v", &["-v", "-q", "ok"]).expect(0);
    assert_eq!(outcome.err, "");
    let outcome = sandbox.run_task("w", &["-v", "ok"]).expect(0);
    assert!(outcome.err.contains("w: running -> succeeded, executor:completed\n"), "{outcome:?}");
}

#[test]
fn a_failure_tells_why() {
    let sandbox = Sandbox::with_tasks();
    let outcome = sandbox.run_task("t", &["fail"]).expect(3);
    assert!(
        outcome.out.contains("exit_code: ") && outcome.out.contains("the-reason"),
        "{outcome:?}"
    );
    let task = sandbox.run_task("u", &["--json", "fail"]).expect(3).json();
    assert_eq!((&task["status"], &task["task_id"]), (&"failed".into(), &"u".into()));
    assert_eq!(task["failure"]["kind"], "exit_code");
}

#[test]
fn options_are_recorded_with_the_task() {
    let sandbox = Sandbox::with_tasks();
    let task = sandbox
        .run_task(
            "t",
            &[
                "--json",
                "say",
                "--args-json",
                r#"{"x": [1, "a b"]}"#,
                "--label",
                "公告",
                "--tag",
                "gpu",
                "--priority",
                "-3",
                "--artifacts",
                "elsewhere",
                "--owner",
                "me",
            ],
        )
        .expect(0)
        .json();
    assert_eq!(task["label"], "公告");
    assert_eq!(task["tags"], serde_json::json!(["gpu", "io"]));
    assert_eq!((&task["priority"], &task["owner"]), (&(-3).into(), &"me".into()));
    assert_eq!(task["bucket_key"], r#"[1,"a b"]"#);
    let log = std::fs::read_to_string(sandbox.path("elsewhere/t/1.log")).unwrap();
    assert_eq!(log, "[1,\"a b\"]\n");
    let task = sandbox.run_task("u", &["--json", "say", "--arg", "x=tenant-A"]).json();
    assert_eq!(task["bucket"], 7);
    let task = sandbox
        .run_task("v", &["--json", "say", "--arg", "x=tenant-A", "--bucket-key", "tenant-B"])
        .json();
    assert_eq!(task["bucket"], 28);
}

#[test]
fn what_is_wrong_is_found_before_a_database_is_made() {
    let sandbox = Sandbox::with_tasks();
    for (args, word) in [
        (&["okk"][..], "did you mean `ok`?"),
        (&["say"], "`x`"),
        (&["ok", "--arg", "y=1"], "no parameter `y`"),
        (&["ok", "--owned-buckets", "64"], "64"),
        (&["say", "--arg", "x=1", "--args-json", "[]"], "--args-json"),
    ] {
        let outcome = sandbox.run_task("t", args).expect(1);
        assert!(outcome.err.contains(word), "{args:?}: {outcome:?}");
        assert!(!sandbox.path("tasks.db").exists(), "{args:?}");
    }
    let outcome = sandbox.run(&["run", "ok"]).expect(1);
    assert!(outcome.err.contains("--tasks"), "{outcome:?}");
    let foreign = sandbox.run(&["--db", "m.toml", "run", "--tasks", "m.toml", "ok"]).expect(1);
    assert!(foreign.err.contains("m.toml"), "{foreign:?}");
    let server =
        sandbox.run(&["--db", "postgresql://u:secret@h/d", "run", "--tasks", "m.toml", "ok"]);
    assert!(!server.expect(1).err.contains("secret"));
}

#[test]
fn an_id_is_used_once_and_buckets_stay_as_they_were() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("t", &["say", "--arg", "x=1", "--num-buckets", "128"]).expect(0);
    assert!(sandbox.run_task("t", &["ok"]).expect(1).err.contains("exists already"));
    let other = sandbox.run_task("u", &["ok", "--num-buckets", "32"]).expect(1);
    assert!(other.err.contains("32") && other.err.contains("128"), "{other:?}");
    // 100 is a bucket of this store.
    let foreign = sandbox.run_task("u", &["ok", "--owned-buckets", "100"]).expect(1);
    assert!(foreign.err.contains("needs a bucket key"), "{foreign:?}");
    sandbox.run(&["status", "u"]).expect(1);
}

#[test]
fn ctrl_c_is_a_persons_stop_and_a_second_one_kills() {
    let sandbox = Sandbox::with_tasks();
    let run = sandbox.start_task("t", &["nap"], "running");
    let pid = sandbox.until_written("nap.pid");
    run.signal("INT");
    let outcome = run.finish().expect(3);
    assert!(outcome.out.contains("t stopped"), "{outcome:?}");
    assert!(!is_alive(&pid));
    let history = sandbox.run(&["--json", "history", "t"]).json();
    assert_eq!(history[3]["trigger"], "user:stop");

    let run = sandbox.start_task("u", &["deaf", "--grace", "1h"], "running");
    let pid = sandbox.until_written("deaf.pid");
    run.signal("INT");
    sandbox.until("u", "stopping");
    run.signal("INT");
    run.finish().expect(3);
    assert!(!is_alive(&pid));
    assert_eq!(sandbox.status("u")["status"], "stopped");
}

#[test]
fn a_hangup_or_termination_is_a_shutdown() {
    let sandbox = Sandbox::with_tasks();
    for (id, signal) in [("t", "TERM"), ("u", "HUP")] {
        let run = sandbox.start_task(id, &["nap"], "running");
        run.signal(signal);
        run.finish().expect(3);
        let history = sandbox.run(&["--json", "history", id]).json();
        assert_eq!(history[3]["trigger"], "runtime:shutdown", "{signal}");
        assert_eq!(sandbox.status(id)["status"], "stopped");
    }
    let alive = sandbox.run(&["--json", "nodes"]).json();
    assert!(alive.as_array().unwrap().iter().all(|node| node["alive"] == false), "{alive}");
}

#[test]
fn signals_that_the_parent_left_blocked_are_heard() {
    let sandbox = Sandbox::with_tasks();
    let block = "my $set = POSIX::SigSet->new(SIGINT, SIGTERM, SIGHUP); sigprocmask(SIG_BLOCK, $set) or die; \
                 exec @ARGV or die";
    let deaf = |args: &[&str]| {
        let program = ["-MPOSIX=:signal_h", "-e", block, env!("CARGO_BIN_EXE_chongming-task")];
        sandbox.start_program(Path::new("perl"), &[&program, args].concat())
    };
    for (id, signal) in [("t", "INT"), ("u", "TERM"), ("v", "HUP")] {
        let run = deaf(&["run", "--tasks", "m.toml", "--id", id, "nap"]);
        sandbox.until(id, "running");
        run.signal(signal);
        run.finish().expect(3);
        assert_eq!(sandbox.status(id)["status"], "stopped", "{signal}");
    }
    // Other commands end by them like any program.
    let _run = sandbox.start_task("w", &["nap"], "running");
    let wait = deaf(&["wait", "w"]);
    wait.signal("TERM");
    assert_eq!(wait.finish().code, None);
}

#[test]
fn readers_that_left_do_not_change_the_tasks_fate() {
    let sandbox = Sandbox::with_tasks();
    for (id, task, code) in [("t", "ok", 0), ("u", "fail", 3)] {
        let mut command = sandbox.command(&["run", "--tasks", "m.toml", "--id", id, task]);
        let (out_reader, out) = std::io::pipe().unwrap();
        let (err_reader, err) = std::io::pipe().unwrap();
        drop((out_reader, err_reader));
        let status = command.stdout(out).stderr(err).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
    assert_eq!(sandbox.status("t")["status"], "succeeded");
}

#[test]
fn an_unwritable_stdout_is_the_commands_failure_not_the_tasks() {
    let sandbox = Sandbox::with_tasks();
    let mut command = sandbox.command(&["run", "--tasks", "m.toml", "--id", "t", "ok"]);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(sandbox.status("t")["status"], "succeeded");
}

#[test]
fn settings_come_from_the_environment() {
    let sandbox = Sandbox::with_tasks();
    let mut command = sandbox.command(&["run", "--tasks", "m.toml", "--id", "t", "ok"]);
    command.envs([
        ("CHONGMING_DB", "other.db"),
        ("CHONGMING_JSON", "1"),
        ("CHONGMING_OWNER", "me"),
    ]);
    let task = finish(command).expect(0).json();
    assert_eq!(task["owner"], "me");
    assert!(
        sandbox.path("other.db").exists() && sandbox.path("other.db.artifacts/t/1.log").exists()
    );
}

#[test]
fn its_json_is_what_status_shows() {
    let sandbox = Sandbox::with_tasks();
    for (id, name, code) in [("t", "ok", 0), ("u", "fail", 3)] {
        let task = sandbox.run_task(id, &["--json", name]).expect(code).json();
        assert_eq!(task, sandbox.status(id));
        assert_ne!(task["lease_until"], serde_json::Value::Null);
    }
}

#[test]
fn too_few_files_are_named_as_what_is_wrong() {
    let sandbox = Sandbox::with_tasks();
    for limit in 8..=12 {
        let mut command = std::process::Command::new("sh");
        let line = format!("ulimit -n {limit}; exec chongming-task run --tasks m.toml ok");
        command.args(["-c", &line]).current_dir(sandbox.path("."));
        command.env("PATH", crate::support::path_with_program()).stdin(Stdio::null());
        let outcome = finish(command).expect(1);
        assert!(outcome.err.contains("ulimit -n"), "{limit}: {outcome:?}");
    }
}

#[test]
fn an_end_that_cannot_be_written_is_no_success() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "m.toml",
        "[tasks.t]\ncommand = [\"sh\", \"-c\", \"exec prlimit --pid $PPID --fsize=0\"]\n",
    );
    let outcome = sandbox.run(&["run", "--tasks", "m.toml", "--id", "a", "t"]).expect(1);
    assert!(outcome.err.contains("error: ") && outcome.err.contains("`a`"), "{outcome:?}");
}

#[test]
fn an_end_that_can_be_written_a_moment_later_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "m.toml",
        "[tasks.t]\ncommand = [\"sh\", \"-c\", \"prlimit --pid $PPID --fsize=0:unlimited && echo $PPID > full\"]\n",
    );
    let running = sandbox.start(&["run", "--tasks", "m.toml", "--id", "a", "t"]);
    let supervisor = sandbox.until_written("full");
    let mut room = std::process::Command::new("prlimit");
    room.args(["--pid", &supervisor, "--fsize=unlimited"]);
    assert!(room.status().unwrap().success());
    running.finish().expect(0);
    assert_eq!(sandbox.status("a")["status"], "succeeded");
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_no_death() {
    let sandbox = Sandbox::with_tasks();
    let mut command = sandbox.command_of(
        "/bin/sh".as_ref(),
        &["-c", "ulimit -f 1; exec chongming-task run --tasks m.toml --id a ok"],
    );
    command.stdout(std::process::Stdio::piped());
    let outcome = crate::support::finish(command).expect(1);
    assert!(outcome.err.contains("error: "), "{outcome:?}");
}

#[test]
fn a_closed_output_is_told() {
    let sandbox = Sandbox::with_tasks();
    for command in [
        "run --tasks m.toml --id a --json ok >&-",
        "ps >&-",
        "ps --json >&-",
        "tasks --tasks m.toml >&-",
        "--help >&-",
    ] {
        let script = format!("exec chongming-task {command}");
        let command = sandbox.command_of("/bin/sh".as_ref(), &["-c", &script]);
        let outcome = crate::support::finish(command).expect(1);
        assert!(outcome.err.contains("standard output"), "{outcome:?}");
    }
    assert_eq!(sandbox.status("a")["status"], "succeeded");
}

#[test]
fn what_may_have_no_end_is_no_manifest() {
    let sandbox = Sandbox::with_tasks();
    let fifo = sandbox.path("fifo.toml");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (path, what) in [("fifo.toml", "a named pipe"), ("/dev/zero", "a device")] {
        let outcome = sandbox.run(&["tasks", "--tasks", path]).expect(1);
        assert!(outcome.err.contains(path) && outcome.err.contains(what), "{outcome:?}");
    }
    for script in [
        "cat m.toml | chongming-task tasks --tasks /dev/stdin",
        "chongming-task tasks --tasks /dev/stdin < m.toml",
    ] {
        let outcome = sandbox.command_of("/bin/sh".as_ref(), &["-c", script]);
        let outcome = crate::support::finish(outcome).expect(0);
        assert!(outcome.out.contains("nap"), "{outcome:?}");
    }
}

#[test]
fn arguments_may_begin_with_a_hyphen() {
    let sandbox = Sandbox::with_tasks();
    let run = ["run", "--tasks", "m.toml", "ok", "--args-json", "-9"];
    let outcome = sandbox.run(&run).expect(1);
    assert!(outcome.err.contains("object"), "{outcome:?}");
}

#[test]
fn what_has_lost_its_mark_and_its_parents_ends_with_the_task() {
    let sandbox = Sandbox::new();
    let script = "(env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > lost.pid; exec sleep 600' \
        </dev/null >/dev/null 2>&1 3<&- 4>&- &)\nwhile ! [ -s lost.pid ]; do sleep 0.01; done\n";
    sandbox.write("lose.sh", script);
    sandbox.write("m.toml", "[tasks.t]\ncommand = [\"sh\", \"lose.sh\"]\n");
    sandbox.run_task("a", &["t"]).expect(0);
    let lost = std::fs::read_to_string(sandbox.path("lost.pid")).unwrap();
    assert!(!crate::support::is_alive(lost.trim()));
}
