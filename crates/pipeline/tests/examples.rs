//! What the examples print.
#![expect(clippy::unwrap_used, reason = "helpers outside of test functions")]

use std::error::Error;
use std::io::Write;

#[expect(dead_code, reason = "the example's main")]
#[path = "../examples/clean_up.rs"]
mod clean_up;
#[expect(dead_code, reason = "the example's main")]
#[path = "../examples/fallback.rs"]
mod fallback;
#[expect(dead_code, reason = "the example's main")]
#[path = "../examples/fan_out_fan_in.rs"]
mod fan_out_fan_in;

type Example = fn(&mut dyn Write) -> Result<(), Box<dyn Error>>;

#[track_caller]
fn check(run: Example, lines: &[&str]) {
    let mut out = Vec::new();
    run(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().collect::<Vec<_>>(), lines);
}

#[test]
fn fan_out_and_fan_in_add_up() {
    check(
        fan_out_fan_in::run,
        &[
            "fetch: succeeded [1,2,3,4,5,6,7,8,9]",
            "square-0: succeeded 126",
            "square-1: succeeded 66",
            "square-2: succeeded 93",
            "add: succeeded 285",
            "succeeded",
        ],
    );
}

#[test]
fn the_fallback_takes_what_there_is() {
    check(
        fallback::run,
        &[
            "primary: failed null",
            "replica: succeeded \"rates of the replica\"",
            "publish: succeeded \"rates of the replica\"",
            "audit: skipped null",
            "failed",
        ],
    );
}

#[test]
fn the_clean_up_runs_whatever_happens() {
    check(
        clean_up::run,
        &[
            "create: succeeded \"scratch-7\"",
            "load: failed null",
            "index: cancelled null",
            "report: skipped null",
            "remove: succeeded \"removed scratch-7\"",
            "failed",
        ],
    );
}
