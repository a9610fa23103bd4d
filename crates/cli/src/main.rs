//! The `chongming-task` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    chongming_task::main()
}
