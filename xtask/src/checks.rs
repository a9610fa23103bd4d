//! `verify`: all checks, all of their findings.

use crate::{crates, floors, run, sources};

/// A check and its name.
type Check = (&'static str, fn() -> Result<(), String>);

/// Runs every check, then tells which failed.
pub(crate) fn verify() -> Result<(), String> {
    let checks: [Check; 7] = [
        ("sources", || told(sources::check(run::root())?)),
        ("floors of the core", || told(floors::check(run::root())?)),
        ("edges between crates", || told(crates::check(&run::metadata()?))),
        ("formatting", run::formatted),
        ("lints", run::linted),
        ("documentation", run::documented),
        ("tests", || run::test(&[])),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        eprintln!("==> {name}");
        if let Err(message) = check() {
            eprintln!("{message}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn told(findings: Vec<String>) -> Result<(), String> {
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}
