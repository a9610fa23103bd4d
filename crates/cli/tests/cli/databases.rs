//! What every command does with a database that is missing, empty, foreign or out of reach.

use crate::support::Sandbox;
#[cfg(all(feature = "sqlite", feature = "process", target_os = "linux"))]
use crate::support::finish;

const READERS: [&[&str]; 17] = [
    &["ps"],
    &["status", "x"],
    &["history", "x"],
    &["logs", "x"],
    &["stop", "x"],
    &["pause", "x"],
    &["resume", "x"],
    &["cancel", "x"],
    &["wait", "x"],
    &["explain", "x"],
    &["stats"],
    &["buckets"],
    &["nodes"],
    &["doctor"],
    &["reconcile"],
    &["prune", "--older-than", "30d"],
    &["ps", "--watch"],
];

#[test]
fn readers_make_no_database_and_name_the_path() {
    let sandbox = Sandbox::new();
    for args in READERS {
        let outcome = sandbox.run(args).expect(1);
        assert!(
            outcome.err.contains("tasks.db") && outcome.out.is_empty(),
            "{args:?}: {outcome:?}"
        );
        assert!(!sandbox.path("tasks.db").exists(), "{args:?}");
    }
    sandbox.write("tasks.db", "");
    sandbox.write("other.db", "no database at all, but long enough to be looked at by somebody");
    for args in READERS {
        assert!(sandbox.run(args).expect(1).err.contains("tasks.db"), "{args:?}");
        let outcome = sandbox.run(&[&["--db", "other.db"], args].concat()).expect(1);
        assert!(outcome.err.contains("other.db"), "{args:?}: {outcome:?}");
    }
    assert_eq!(std::fs::read(sandbox.path("tasks.db")).unwrap(), b"");
}

#[test]
#[cfg(feature = "sqlite")]
fn a_path_that_is_written_like_a_folder_is_no_file() {
    let sandbox = Sandbox::with_tasks();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    for (path, words) in [
        ("missing/", "written like a folder"),
        ("missing/.", "written like a folder"),
        ("missing//", "written like a folder"),
        ("folder/", "is a folder"),
        ("folder/.", "is a folder"),
        ("m.toml/", "cannot be read"),
    ] {
        let ok = ["--db", path, "run", "--tasks", "m.toml", "ok"];
        for args in [&ok[..], &["--db", path, "ps"]] {
            let outcome = sandbox.run(args).expect(1);
            let told = outcome.err.contains(words) && outcome.err.contains(path);
            assert!(told && outcome.out.is_empty(), "{outcome:?}");
        }
    }
    assert!(std::fs::read_dir(sandbox.path("folder")).unwrap().next().is_none());
    assert_eq!(std::fs::read_dir(sandbox.path(".")).unwrap().count(), 2, "nothing was made");
}

/// SQLite opens for reading what it may not open for writing, and would say so at each write.
#[test]
#[cfg(all(feature = "sqlite", feature = "process", target_os = "linux"))]
fn who_may_only_read_runs_nothing() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let sandbox = Sandbox::with_tasks();
    let manifest = "[tasks.mark]\ncommand = ['touch', 'open/ran']\n";
    sandbox.write("mark.toml", manifest);
    std::fs::create_dir(sandbox.path("open")).unwrap();
    let allow = |name: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(sandbox.path(name), permissions).unwrap();
    };
    // Another process copies it: a child of another test could hold open for writing what this one has written.
    let program = sandbox.path("program");
    let mut copy = std::process::Command::new("install");
    copy.args(["-m", "755", env!("CARGO_BIN_EXE_chongming-task")]).arg(&program);
    assert!(copy.status().unwrap().success());
    for (name, mode) in [(".", 0o755), ("mark.toml", 0o644), ("open", 0o777)] {
        allow(name, mode);
    }

    let is_refused = |case: &str| {
        let run = ["run", "--tasks", "mark.toml", "mark", "--id", "x", "--artifacts", "open"];
        let mut command = sandbox.command_of(&program, &run);
        // Rights mean nothing to root.
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let outcome = finish(command).expect(1);
        assert!(outcome.err.contains("tasks.db cannot be written; check"), "{case}: {outcome:?}");
        assert!(std::fs::read_dir(sandbox.path("open")).unwrap().next().is_none(), "{case}");
    };
    sandbox.run_task("first", &["ok"]).expect(0);
    allow("tasks.db", 0o444);
    is_refused("nobody has it open");
    allow("tasks.db", 0o666);
    let holder = sandbox.start_task("held", &["nap"], "running");
    allow("tasks.db", 0o444);
    is_refused("somebody has it open");
    allow("tasks.db", 0o666);
    allow("tasks.db-wal", 0o444);
    is_refused("its log may not be written");
    holder.crash();
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.run(&["--db", "postgresql://me:s3cret@127.0.0.1:1/none", "ps"]).expect(1);
    let word = if cfg!(feature = "postgres") { "127.0.0.1:1" } else { "`postgres`" };
    assert!(outcome.err.contains(word) && !outcome.err.contains("s3cret"), "{outcome:?}");
}

#[test]
fn buckets_are_held_against_the_stores_own_number_in_every_command() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("x", &["say", "--arg", "x=1", "--num-buckets", "8"]).expect(0);
    let without_store: [&[&str]; 2] = [&["tasks", "--tasks", "m.toml"], &["completions", "bash"]];
    for args in READERS.iter().take(16).copied().chain(without_store) {
        let outcome = sandbox.run(&[&["--owned-buckets", "8"], args].concat()).expect(1);
        assert!(outcome.err.contains("has 8 buckets"), "{args:?}: {outcome:?}");
        let outcome = sandbox.run(&[&["--num-buckets", "16"], args].concat()).expect(1);
        assert!(outcome.err.contains("16") && outcome.err.contains('8'), "{args:?}: {outcome:?}");
    }
    sandbox.run(&["--owned-buckets", "7", "--num-buckets", "8", "ps"]).expect(0);
}
