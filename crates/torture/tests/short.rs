//! A short run on each store. What is found is the referee's word; the choices are those of the seed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::process::{Command, Output};

fn torture(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chongming-torture"));
    command.args(args).output().unwrap()
}

#[track_caller]
fn expect_clean(output: &Output) {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("0 violations"), "{said}");
    println!("{said}");
}

#[test]
fn a_file_survives_a_monkey() {
    expect_clean(&torture(&["--seconds", "30", "--seed", "1"]));
}

#[test]
fn a_server_survives_a_monkey() {
    if std::env::var_os("CHONGMING_TEST_POSTGRES").is_none() {
        if std::env::var_os("CI").is_some() {
            panic!("with CI set every test must run, and there is no Postgres server");
        }
        println!("SKIPPED: no Postgres server; `cargo xtask test` starts one");
        return;
    }
    let output = torture(&["--seconds", "15", "--seed", "1", "--db", "postgres"]);
    if String::from_utf8_lossy(&output.stderr).contains("there is no Postgres here") {
        println!("SKIPPED: the server is elsewhere, and cannot be restarted");
        return;
    }
    expect_clean(&output);
}

#[test]
fn bad_usage_is_told() {
    let output = torture(&["--seed"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: cargo xtask torture"));
}
