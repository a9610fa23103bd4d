//! `cargo xtask NAME`: what CI does, a developer does with the same words.
#![forbid(unsafe_code)]

mod certificates;
mod checks;
mod crates;
mod floors;
mod postgres;
mod run;
mod sources;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [ARGS]   every test; or those that ARGS of the test runner select
  verify        formatting, lints, docs, structure, then every test; writes nothing
  ci            what verify does
  bench [ARGS]  every benchmark beside its raw limit; --json prints one object a line
  torture [ARGS]  supervisors that are killed, frozen and cut off, and a referee; --help lists ARGS
  fix           formats, and applies what the linter can mend
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test", rest @ ..] => run::test(rest),
        ["verify" | "ci"] => checks::verify(),
        ["bench", rest @ ..] => run::bench(rest),
        ["torture", rest @ ..] => run::torture(rest),
        ["fix"] => run::fix(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
