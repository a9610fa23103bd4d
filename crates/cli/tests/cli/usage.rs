//! What all commands have in common: exit codes, streams, the environment.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::support::{Sandbox, finish};

#[test]
fn bad_usage_exits_1_and_says_why_on_stderr() {
    let sandbox = Sandbox::new();
    for args in [
        &[][..],
        &["no-such-command"],
        &["ps", "--no-such-flag"],
        &["status"],
        &["status", "bad\nid"],
        &["--owned-buckets", "64", "stats"],
        &["--db=", "ps"],
        &["tasks"],
        &["completions", "tcsh"],
    ] {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(1), "{args:?}: {outcome:?}");
        assert!(outcome.out.is_empty() && !outcome.err.is_empty(), "{args:?}: {outcome:?}");
    }
}

#[test]
fn help_and_version_exit_0_on_stdout() {
    let sandbox = Sandbox::new();
    for args in [&["--help"][..], &["-h"], &["ps", "--help"], &["help", "run"], &["--version"]] {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {outcome:?}");
        assert!(!outcome.out.is_empty() && outcome.err.is_empty(), "{args:?}: {outcome:?}");
    }
    assert!(sandbox.run(&["--help"]).out.contains("Exit codes"));
}

#[test]
fn a_password_is_shown_nowhere() {
    let sandbox = Sandbox::new();
    let address = "postgresql://me:s3cret@127.0.0.1:1/none";
    for args in [&["--help"][..], &["ps", "--help"], &["ps", "x", "--nope"], &["status", address]] {
        let mut command = sandbox.command(args);
        command.env("CHONGMING_DB", address);
        let outcome = finish(command);
        assert!(!format!("{outcome:?}").contains("s3cret"), "{args:?}: {outcome:?}");
    }
    let outcome = sandbox.run(&[address, "ps"]);
    assert!(!format!("{outcome:?}").contains("s3cret"), "{outcome:?}");
}

#[test]
fn options_come_from_the_environment_too() {
    let sandbox = Sandbox::new();
    let manifest = sandbox.write("m.toml", "[tasks.a]\ncommand = ['true']\n");
    let run = |variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&["tasks", "--tasks"]);
        command.arg(&manifest).envs(variables.iter().copied());
        finish(command)
    };
    assert!(run(&[("CHONGMING_JSON", "1")]).out.starts_with('['));
    assert!(run(&[("CHONGMING_JSON", "")]).out.starts_with("NAME"));
    assert!(run(&[("CHONGMING_COLOR", "always")]).out.contains('\x1b'));
    assert_eq!(run(&[("CHONGMING_OWNED_BUCKETS", "64")]).code, Some(1));
    let more = run(&[("CHONGMING_OWNED_BUCKETS", "64"), ("CHONGMING_NUM_BUCKETS", "65")]);
    assert_eq!(more.code, Some(0), "{more:?}");
    for variable in ["CHONGMING_JSON", "CHONGMING_VERBOSE", "CHONGMING_QUIET"] {
        for value in ["", "0", "false", "off", "1", "true", "yes"] {
            let taken = run(&[(variable, value)]);
            assert_eq!(taken.code, Some(0), "{variable}={value}: {taken:?}");
        }
        let bad = run(&[(variable, "perhaps")]);
        assert_eq!(bad.code, Some(1));
        assert!(bad.err.contains("perhaps"), "{bad:?}");
    }
    assert_eq!(run(&[("CHONGMING_VERBOSE", "2")]).code, Some(0));
}

#[test]
fn a_wrong_variable_is_named() {
    let sandbox = Sandbox::new();
    for (variable, value) in [
        ("CHONGMING_NUM_BUCKETS", ""),
        ("CHONGMING_NUM_BUCKETS", "0"),
        ("CHONGMING_OWNED_BUCKETS", ""),
        ("CHONGMING_OWNED_BUCKETS", "5-3"),
        ("CHONGMING_OWNER", ""),
        ("CHONGMING_JSON", "perhaps"),
        ("CHONGMING_COLOR", ""),
        ("CHONGMING_COLOR", "sometimes"),
        ("CHONGMING_VERBOSE", "-1"),
        ("CHONGMING_QUIET", "perhaps"),
        ("CHONGMING_DB", ""),
    ] {
        let mut command = sandbox.command(&["ps"]);
        command.env(variable, value);
        let outcome = finish(command).expect(1);
        assert!(outcome.err.contains(variable), "{variable}={value}: {outcome:?}");
    }
    // What was typed counts, and the variable is not to blame.
    for typed in ["--num-buckets=0", "--num-buckets"] {
        let mut command = sandbox.command(&["ps", typed]);
        command.args((typed == "--num-buckets").then_some("0")).env("CHONGMING_NUM_BUCKETS", "0");
        let outcome = finish(command).expect(1);
        assert!(!outcome.err.contains("CHONGMING_NUM_BUCKETS"), "{outcome:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_unwritable_stdout_is_an_error() {
    let sandbox = Sandbox::new();
    let manifest = sandbox.write("m.toml", "[tasks.a]\ncommand = ['true']\n");
    let manifest = manifest.to_str().unwrap();
    for args in [&["--version"][..], &["tasks", "--tasks", manifest], &["completions", "bash"]] {
        let mut command = sandbox.command(args);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        command.stdout(full).stderr(Stdio::piped());
        let outcome = command.spawn().unwrap().wait_with_output().unwrap();
        let err = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.starts_with("error: cannot write to standard output"), "{args:?}: {err}");
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_left_is_not() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = sandbox.command(&["completions", "bash"]);
    command.stdout(writer).stderr(Stdio::piped());
    let outcome = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(String::from_utf8(outcome.stderr).unwrap(), "");
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let sandbox = Sandbox::new();
    let read_only = File::open(sandbox.write("x", "")).unwrap();
    let mut command = sandbox.command(&["no-such-command"]);
    command.stderr(read_only).stdout(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(1));
}
