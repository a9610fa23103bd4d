//! Command lines as people and scripts write them.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::CommandFactory;

use super::global::{Settings, Verbosity};
use super::*;
use crate::error::CliError;

fn cli(line: &str) -> Result<Cli, Stop> {
    let words = std::iter::once("chongming-task").chain(line.split_whitespace());
    parse(words.map(OsString::from))
}

fn settings(line: &str) -> Result<Settings, CliError> {
    cli(line).unwrap().global.settle()
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_the_product_is_there() {
    let lines = [
        "run --tasks m.toml sync --arg tenant=A --arg x= --args-json {} --id i --label l --bucket-key k \
         --priority -3 --tag a --tag b --artifacts d --grace 1s --lease-ttl 2s",
        "pipeline --tasks m.toml nightly --id r --args-json {} --grace 0s",
        "tasks --tasks m.toml",
        "ps --all --mine --status queued,running --status lost --bucket 0-3 --tag t --name n --limit 0 --watch",
        "ps --watch=500ms",
        "status id",
        "history id",
        "logs id -f --attempt 2",
        "stop a b --reason why --wait 10s",
        "pause a --reason why --wait 10s",
        "resume a --reason why --wait 10s",
        "cancel a --reason why --wait 10s",
        "wait a b --timeout 1m",
        "explain id",
        "stats",
        "buckets",
        "nodes",
        "doctor --stale 1h",
        "reconcile --dry-run --reason why",
        "prune --older-than 30d --dry-run",
        "report progress 3 --total 10 --unit files --message x",
        "completions bash",
    ];
    for line in lines {
        assert!(cli(line).is_ok(), "{line}: {:?}", cli(line));
    }
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name} is in no test");
    }
}

#[test]
fn values_are_read_as_meant() {
    let line = "run sync --arg a=b=c --priority -3 --label -l --bucket-key -k --tag -t";
    let Command::Run(run) = cli(line).unwrap().command else { panic!("run") };
    assert_eq!(run.running.label.as_deref(), Some("-l"));
    assert_eq!(run.running.bucket_key.as_deref(), Some("-k"));
    assert_eq!(run.running.tags, ["-t"]);
    assert_eq!(run.args, [("a".to_owned(), "b=c".to_owned())]);
    assert_eq!((run.running.priority, run.running.grace), (Some(-3), None));
    assert_eq!(run.running.lease_ttl, Duration::from_secs(30));
    let host = crate::Host { program: "x".to_owned(), tasks: None };
    assert!(run.module.load(&host).is_err());

    let Command::Ps(ps) = cli("ps --status queued,lost --watch --limit 5").unwrap().command else {
        panic!("ps")
    };
    assert_eq!(ps.statuses.len(), 2);
    assert_eq!((ps.watch, ps.limit), (Some(Duration::from_secs(1)), 5));
}

#[test]
fn global_options_stand_anywhere() {
    for line in
        ["--json --db x.db -v ps", "ps --json --db x.db -v", "--json ps -v --json --db x.db"]
    {
        let settings = settings(line).unwrap();
        assert!(settings.json, "{line}");
        assert_eq!(settings.database.to_string(), "x.db", "{line}");
        assert_eq!(settings.verbosity, Verbosity::Verbose, "{line}");
    }
    let verbosity = |line| settings(line).unwrap().verbosity;
    assert_eq!(verbosity("ps"), Verbosity::Normal);
    assert_eq!(verbosity("ps -q"), Verbosity::Quiet);
    assert_eq!(verbosity("ps -q -v"), Verbosity::Quiet);
    assert_eq!(verbosity("ps -vvvv"), Verbosity::Verbose);
}

#[test]
fn bad_usage_names_the_option_and_the_value() {
    for (line, words) in [
        ("pss", &["pss", "ps"][..]),
        ("ps --statsu x", &["--statsu", "--status"]),
        ("ps --status runing", &["runing", "'running'"]),
        ("run", &["NAME"]),
        ("run x --arg y", &["--arg", "NAME=VALUE"]),
        ("run x --grace 5", &["--grace", "`5`"]),
        ("run x --lease-ttl 99ms", &["--lease-ttl", "at least 100ms"]),
        ("ps --watch=0s", &["--watch", "longer than zero"]),
        ("wait", &["ID"]),
        ("wait x --timeout 5w", &["--timeout", "5w"]),
        ("stop x --wait -1s", &["--wait"]),
        ("prune", &["--older-than"]),
        ("doctor --stale soon", &["--stale", "soon"]),
        ("ps --watch=x", &["--watch", "`x`"]),
        ("ps --limit -1", &["--limit", "-1"]),
        ("logs x --attempt 0", &["--attempt", "'0'"]),
        ("logs x --attempt -1", &["--attempt", "-1"]),
        ("--num-buckets -1 ps", &["--num-buckets", "-1"]),
        ("--num-buckets 0 ps", &["--num-buckets"]),
        ("--num-buckets 99999999999 ps", &["--num-buckets"]),
        ("--owned-buckets 5-3 ps", &["--owned-buckets", "5-3"]),
        ("--owned-buckets -1 ps", &["--owned-buckets", "-1"]),
        ("--owned-buckets= ps", &["--owned-buckets"]),
        ("--color sometimes ps", &["--color", "sometimes", "never"]),
    ] {
        let Err(Stop::BadUsage(text)) = cli(line) else { panic!("{line} was taken") };
        for word in words {
            assert!(text.contains(word), "{line}: wanted {word}: {text}");
        }
    }
    let long = format!("status {}", "x".repeat(256));
    assert!(matches!(cli(&long), Err(Stop::BadUsage(text)) if text.contains("256 bytes")));
}

#[test]
fn a_wrong_number_is_told_with_the_range() {
    for (option, values, range) in [
        ("ps --limit", ["-1", "x", "1.5", "99999999999999999999"], "0 to 18446744073709551615"),
        ("logs x --attempt", ["-1", "0", "x", "4294967296"], "1 to 4294967295"),
        (
            "run x --priority",
            ["2147483648", "x", "1e3", "-2147483649"],
            "-2147483648 to 2147483647",
        ),
        ("report paused --epoch", ["-1", "x", "0x1", "1_0"], "0 to 18446744073709551615"),
        ("ps --num-buckets", ["0", "-1", "1048577", "99999999999999999999"], "1 to 1048576"),
    ] {
        for value in values {
            let Err(Stop::BadUsage(text)) = cli(&format!("{option} {value}")) else {
                panic!("{option} {value} was taken")
            };
            let name = option.rsplit(' ').next().unwrap();
            let words = format!("write a whole number from {range}");
            for word in [name, &format!("'{value}'"), &words] {
                assert!(text.contains(word), "{option} {value}: {text}");
            }
        }
    }
    for (line, words) in [
        ("report progress x", "write a number, such as"),
        ("report progress 1 --total inf", "write a finite number"),
    ] {
        assert!(matches!(cli(line), Err(Stop::BadUsage(text)) if text.contains(words)), "{line}");
    }
}

#[test]
fn owned_buckets_exist_in_the_store_or_are_an_error() {
    let ownership = |line: &str, num_buckets| {
        settings(line).unwrap().ownership(NonZeroU32::new(num_buckets).unwrap())
    };
    for (line, num_buckets, word) in [
        ("--owned-buckets 64 ps", 64, "64 buckets"),
        ("--owned-buckets 0-64 status x", 64, "64 buckets"),
        ("--owned-buckets 8 tasks", 8, "8 buckets"),
    ] {
        let error = ownership(line, num_buckets).unwrap_err();
        assert!(error.message.contains("--owned-buckets"), "{error}");
        assert!(error.message.contains(word), "{error}");
    }
    assert!(ownership("--owned-buckets 0-63 ps", 64).is_ok());
    assert!(ownership("--owned-buckets 64 ps", 65).is_ok());
    let none = settings("ps --mine").unwrap();
    assert!(none.require_owned_buckets("--mine").unwrap_err().message.contains("--mine"));
}

#[test]
fn help_and_version_are_answers() {
    for line in ["--help", "ps --help", "-h", "help stop", "--version"] {
        assert!(matches!(cli(line), Err(Stop::Answer(_))), "{line}");
    }
    assert!(matches!(cli(""), Err(Stop::BadUsage(_))));
}

#[test]
#[cfg(unix)]
fn what_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let bad = OsString::from_vec(b"a\n\xff".to_vec());
    let words = ["x", "status"].map(OsString::from).into_iter().chain([bad.clone()]);
    let Err(Stop::BadUsage(text)) = parse(words) else { panic!() };
    assert_eq!(text, "error: only paths may be other than UTF-8: \"a\\n\\xFF\"\n");
    let variables = [("CHONGMING_OWNER", bad.clone()), ("CHONGMING_DB", "a".into()), ("X", bad)];
    let variables = variables.map(|(name, value)| (OsString::from(name), value));
    assert_eq!(not_utf8(&[], variables.into_iter()), "CHONGMING_OWNER=\"a\\n\\xFF\"");
}

#[test]
fn what_is_repeated_in_messages_is_harmless() {
    let Err(Stop::BadUsage(text)) = parse(["x", "\x1b[31m"].map(OsString::from)) else { panic!() };
    assert!(!text.contains('\x1b'), "{text}");
    for words in [
        &["status", "a\nerror: b\tc"][..],
        &["a\nerror: b\tc"],
        &["ps", "--status", "a\nerror: b\tc"],
        &["ps", "--watch=a\nerror: b\tc"],
        &["ps", "--a\nerror: b\tc"],
        &["ps", "--limit", "a\nerror: b\tc"],
        &["ps", "--bucket", "a\nerror: b\tc"],
        &["--owned-buckets", "a\nerror: b\tc", "ps"],
        &["--color", "a\nerror: b\tc", "ps"],
        &["run", "x", "--arg", "a\nerror: b\tc"],
        &["run", "x", "--label", "a\0\nerror: b\tc"],
        &["report", "progress", "a\nerror: b\tc"],
        &["report", "a\nerror: b\tc"],
        &["completions", "a\nerror: b\tc"],
        &["stop", "a", "--wait", "a\nerror: b\tc"],
    ] {
        let words = std::iter::once(&"x").chain(words);
        let Err(Stop::BadUsage(text)) = parse(words.map(OsString::from)) else { panic!() };
        assert!(!text.contains("\nerror: b") && !text.contains('\t'), "{text}");
    }
    let Err(Stop::BadUsage(text)) = cli("postgresql://me:secret@host/db ps") else { panic!() };
    assert!(!text.contains("secret"), "{text}");
}
