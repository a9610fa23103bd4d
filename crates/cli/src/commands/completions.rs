//! `completions`: for the shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::CliError;
use crate::exit_codes;
use crate::output::console::Console;

/// Print the completions of a shell, to be sourced by it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum, ignore_case = true)]
    pub(crate) shell: Shell,
}

/// Prints them for the program of this name.
pub(super) fn execute(
    args: CompletionsArgs,
    program: &str,
    console: &mut Console,
) -> Result<u8, CliError> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), program, &mut script);
    console.write(&script)?;
    Ok(exit_codes::DONE)
}
