//! Runs cargo: tests, lints, fixes.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::postgres::{self, Purpose, Server};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Every test, or those that `args` select, with a Postgres server where there can be one. The doc
/// tests come first, so that the last lines are those of the test runner.
pub(crate) fn test(args: &[&str]) -> Result<(), String> {
    if args.is_empty() {
        cargo(&[&["test", "--doc", "--all-features", "--workspace"]])?;
    }
    // Some tests run an example as a user would.
    cargo(&[&["build", "--all-features", "--workspace", "--examples"]])?;
    let which = if args.is_empty() { &["--workspace"] } else { args };
    let args = if has_nextest() {
        [&["nextest", "run", "--all-features", "--no-fail-fast"], which].concat()
    } else {
        let kinds: &[&str] = &["--lib", "--bins", "--tests", "--examples"];
        [&["test", "--all-features", "--no-fail-fast"], kinds, which].concat()
    };
    let mut tests = command(&args);
    let server = postgres::server(Purpose::Tests)?;
    if let Server::Started(cluster) = &server {
        cluster.announce(&mut tests);
    }
    finish(&mut tests, &args.join(" "))
}

/// Every benchmark, or those whose name contains an argument, with a durable Postgres server where there can be one.
pub(crate) fn bench(args: &[&str]) -> Result<(), String> {
    let bench = ["bench", "--quiet", "--workspace", "--all-features", "--benches", "--"];
    let args = [&bench, args].concat();
    let mut benches = command(&args);
    let server = postgres::server(Purpose::Benches)?;
    if let Server::Started(cluster) = &server {
        cluster.announce(&mut benches);
    }
    finish(&mut benches, &args.join(" "))
}

/// Supervisors that are killed, frozen and cut off from their store.
pub(crate) fn torture(args: &[&str]) -> Result<(), String> {
    cargo(&[&["run", "--quiet", "--package", "chongming-torture", "--"], args])
}

/// Formats, and applies what the linter can mend.
pub(crate) fn fix() -> Result<(), String> {
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged"];
    cargo(&[&clippy, &["--workspace", "--all-targets", "--all-features"]])?;
    cargo(&[&["fmt", "--all"]])
}

/// Formatting, without writing.
pub(crate) fn formatted() -> Result<(), String> {
    cargo(&[&["fmt", "--all", "--check"]])
}

/// Lints.
pub(crate) fn linted() -> Result<(), String> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
    cargo(&[&all, &["--", "--deny", "warnings"]])
}

/// Documentation that builds, with links that lead somewhere.
pub(crate) fn documented() -> Result<(), String> {
    let args = ["doc", "--workspace", "--all-features", "--no-deps"];
    finish(command(&args).env("RUSTDOCFLAGS", "--deny warnings"), &args.join(" "))
}

/// What `cargo metadata` says about the workspace's own packages.
pub(crate) fn metadata() -> Result<serde_json::Value, String> {
    let output = command(&["metadata", "--format-version=1", "--no-deps"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read the answer of cargo metadata: {error}"))
}

fn has_nextest() -> bool {
    let mut ask = command(&["nextest", "--version"]);
    ask.stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

fn cargo(args: &[&[&str]]) -> Result<(), String> {
    let args = args.concat();
    finish(&mut command(&args), &args.join(" "))
}

fn command(args: &[&str]) -> Command {
    // Set by cargo, which started us: the same toolchain goes on.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    command
}

fn finish(command: &mut Command, shown: &str) -> Result<(), String> {
    eprintln!("==> cargo {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {shown}: {status}")),
        Err(error) => Err(format!("cannot start cargo {shown}: {error}")),
    }
}
