//! Children that break the task protocol in every way: none harms the supervisor, each attempt ends with what
//! is known.

use chongming_core::{AttemptEnd, FailureKind, Report, Value};

use crate::support::{Rig, TEST_PROGRAM};

fn result(value: &str) -> String {
    format!("{{\"type\":\"result\",\"value\":{value}}}")
}

/// Runs a shell script that has `say`, which writes one line up.
fn end(rig: &Rig, script: &str) -> AttemptEnd {
    rig.sh(&format!("say() {{ printf '%s\\n' \"$1\" >&4; }}; {script}")).ended()
}

fn says(rig: &Rig, line: &str, exit: u8) -> AttemptEnd {
    end(rig, &format!("say '{line}'; exit {exit}"))
}

fn kind(end: AttemptEnd) -> (FailureKind, bool) {
    match end {
        AttemptEnd::Failed(failure) => (failure.kind, failure.retryable),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_arrive_whole_or_not_at_all() {
    let rig = Rig::new();
    let completed = |value| AttemptEnd::Completed(value);
    for (text, value) in [
        ("0.1", Value::Float(0.1)),
        ("-0.0", Value::Float(-0.0)),
        ("5e-324", Value::Float(5e-324)),
        ("1.7976931348623157e308", Value::Float(f64::MAX)),
        ("18446744073709551615", Value::UInt(u64::MAX)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        ("\"a\\u0000b\"", Value::String("a\0b".to_owned())),
    ] {
        assert_eq!(says(&rig, &result(text), 0), completed(value), "{text}");
    }
    let nested = |depth: usize| result(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    assert!(matches!(says(&rig, &nested(128), 0), AttemptEnd::Completed(_)));
    for bad in [nested(129), result("NaN"), result("1e999"), result("[1,"), result("\"\u{1}\"")] {
        for exit in [0, 1] {
            let said = kind(says(&rig, &bad, exit));
            assert_eq!(said, (FailureKind::ResultInvalid, false), "{bad} exit {exit}");
        }
    }
    let late = format!("say '{}'; say '{}'", result("NaN"), result("1"));
    assert_eq!(end(&rig, &late), completed(Value::Int(1)));
}

#[test]
fn a_version_that_we_do_not_speak_ends_the_attempt() {
    let rig = Rig::new();
    for hello in ["{\"type\":\"hello\",\"protocol\":2}", "{\"type\":\"hello\"}"] {
        let script = format!("say '{hello}'; say '{}'; exec sleep 1000", result("1"));
        assert_eq!(kind(end(&rig, &script)), (FailureKind::LaunchFailed, false), "{hello}");
    }
}

#[test]
fn garbage_halves_and_an_early_close_are_survived() {
    let rig = Rig::new();
    for script in [
        "head -c 3000000 /dev/urandom >&4",
        "printf '\\377\\376\\000\\n\\000\\000\\n' >&4",
        "printf '{\"type\":\"checkpoint\"' >&4",
        "printf '\\n\\n\\n' >&4",
        "exec 3<&- 4>&-; echo on",
        "say '{\"type\":\"dance\"}'; say '[]'; say 'null'; say '7'",
    ] {
        assert_eq!(end(&rig, script), AttemptEnd::Completed(Value::Null), "{script}");
    }
}

#[test]
fn what_follows_a_result_counts_too() {
    let rig = Rig::new();
    let two =
        format!("say '{}'; say '{}'; say '{{\"type\":\"checkpoint\"}}'", result("1"), result("2"));
    assert_eq!(end(&rig, &two), AttemptEnd::Completed(Value::Int(2)));
    let failure =
        format!("say '{}'; say '{{\"type\":\"failure\",\"message\":\"no\"}}'", result("1"));
    assert_eq!(kind(end(&rig, &failure)), (FailureKind::Exception, true));
}

#[test]
fn a_flood_of_messages_and_long_texts_are_bounded() {
    let rig = Rig::new();
    let flood = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); \
                 echo '{\"type\":\"progress\",\"done\":'$i'}'; done >&4";
    assert_eq!(end(&rig, flood), AttemptEnd::Completed(Value::Null));
    let long = "printf '{\"type\":\"failure\",\"message\":\"' >&4; \
                head -c 10000000 /dev/zero | tr '\\0' x >&4; printf '\"}\\n' >&4";
    let AttemptEnd::Failed(failure) = end(&rig, long) else { panic!("a failure") };
    assert!(failure.message.len() <= 16 * 1024 && failure.message.ends_with("(cut)"));
}

/// The supervisor is a process of its own, so that its memory can be seen.
#[test]
fn an_endless_line_takes_bounded_memory() {
    use std::io::{BufRead, BufReader};
    let script = "head -c 1073741824 /dev/zero >&4; echo through; exec sleep 1000";
    let mut supervisor = std::process::Command::new(TEST_PROGRAM)
        .args(["supervise", "1", "/bin/sh", "-c", script])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(supervisor.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "through"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", supervisor.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(kib < 128 * 1024, "{kib} KiB");
}

#[test]
fn silence_is_a_command_like_any_other() {
    let rig = Rig::new();
    let attempt = rig.sh("read -r start <&3; exit 0");
    attempt.completed();
    attempt.reports.get(|all| assert_eq!(all.first(), Some(&Report::Launched)));
}
