//! The executor contract, on Rust functions in processes of their own.
//!
//! Has no test harness, since each body runs in this program, run again, and `init_with` must come first in `main`.
//! It understands as much of a harness's command line as test runners use: `--list`, `--exact`, parts of names.

#[cfg(target_os = "linux")]
fn main() {
    use std::sync::Arc;

    use chongming_contract::executor::{CLAUSES, Fixture, assert_clause, definitions};
    use chongming_core::Executor;
    use chongming_executor_process::{ProcessExecutor, init_with};

    struct Processes;

    impl Fixture for Processes {
        #[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
        fn executor(&self) -> Arc<dyn Executor> {
            Arc::new(ProcessExecutor::new().unwrap())
        }
    }

    init_with(definitions);
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| args.iter().any(|arg| arg == option);
    if has("--ignored") {
        return; // None is.
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| {
        let matches = |wanted: &&String| {
            if has("--exact") { name == wanted.as_str() } else { name.contains(wanted.as_str()) }
        };
        wanted.is_empty() || has("--list") || wanted.iter().any(matches)
    };
    for clause in CLAUSES.iter().filter(|clause| is_wanted(clause.name)) {
        if has("--list") {
            println!("{}: test", clause.name);
        } else {
            assert_clause(clause.name, &Processes);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
