//! The executor contract, on Rust functions in processes of their own.
//!
//! Has no test harness: each body runs in this program, run again, which `init_with` in `main` makes its carrier.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::sync::Arc;

    use chongming_contract::executor::{Fixture, definitions, run};
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
    let report = run(&Processes);
    print!("{report}");
    if report.passed() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
