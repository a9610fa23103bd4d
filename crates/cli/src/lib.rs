//! The command line of chongming-task, for programs with tasks of their own.
//!
//! ```no_run
//! use chongming_core::{TaskContext, TaskDefinition, TaskError};
//!
//! fn count(ctx: &TaskContext, up_to: u32) -> Result<u32, TaskError> {
//!     (0..up_to).try_for_each(|_| ctx.checkpoint())?;
//!     Ok(up_to)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     chongming_task::main_with(|| [TaskDefinition::new("count", count)])
//! }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "pipeline"),
    expect(dead_code, reason = "for running tasks and pipelines")
)]

mod args;
mod arguments;
mod commands;
mod database;
#[cfg(test)]
mod documentation;
mod duration;
mod error;
mod exit_codes;
mod manifest;
mod module;
mod nearest;
mod open_store;
mod output;
#[cfg(feature = "process")]
mod supervisor;
#[cfg(feature = "process")]
mod task_channel;
mod views;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use chongming_core::TaskSnapshot;

use args::{Cli, Stop};
use error::CliError;
use output::color::ColorChoice;
use output::console::{Console, print_error};

/// The command line without tasks of its own: reads the arguments of this process, does what they say, and
/// gives the exit code. To be called first in `main`: the guardian of external commands is the same program, run
/// again.
pub fn main() -> ExitCode {
    #[cfg(feature = "process")]
    chongming_executor_process::init();
    run(&|_| Ok(None))
}

/// The whole command line, for a program with tasks of its own (spec 15). To be called first in `main`.
///
/// `run NAME` runs them, `tasks` lists them, and every other command works as it does in `chongming-task`; with
/// `--tasks MODULE` the module's tasks take their place. Each attempt runs in a child of this program, so a stop
/// can always be enforced and a crash harms nothing else. The child calls `register` anew: it must return the
/// same tasks every time, and is the place for nothing else.
#[cfg(feature = "process")]
pub fn main_with<I>(register: impl Fn() -> I) -> ExitCode
where
    I: IntoIterator<Item = chongming_core::TaskDefinition>,
{
    chongming_executor_process::init_with(&register);
    run(&|program| module::functions(program.to_owned(), register()).map(Some))
}

/// The table of `ps` (spec 8): a header and a line for each task, with nothing cut.
///
/// ```
/// use chongming_core::{Controller, Submit, TaskContext, TaskDefinition, TaskError};
///
/// let sync = TaskDefinition::new("sync", |_: &TaskContext, ()| Ok::<(), TaskError>(()));
/// let controller = Controller::builder().register(sync).build()?;
/// let outcome = controller.submit(Submit::new("sync"))?.wait(None)?;
/// let table = chongming_task::render_table([&*outcome.snapshot]);
/// assert!(table.starts_with("TASK_ID") && table.contains("  succeeded  1/1"), "{table}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn render_table<'a>(tasks: impl IntoIterator<Item = &'a TaskSnapshot>) -> String {
    let lines = views::task::table(tasks, SystemTime::now().into()).lines(None, false);
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The program that the command line is part of.
pub(crate) struct Host {
    /// The name that the user started.
    pub(crate) program: String,
    /// Its own tasks; none = it has none of its own.
    pub(crate) tasks: Option<module::Functions>,
}

fn run(tasks: &dyn Fn(&str) -> Result<Option<module::Functions>, CliError>) -> ExitCode {
    survive_size_limits();
    let args: Vec<OsString> = std::env::args_os().collect();
    let program = program_name(args.first().map(OsString::as_os_str));
    match args::parse(args) {
        Ok(cli) => report(tasks(&program).and_then(|tasks| execute(cli, Host { program, tasks }))),
        Err(Stop::Answer(text)) => report(answer(&text)),
        Err(Stop::BadUsage(text)) => {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            ExitCode::from(exit_codes::COMMAND_FAILED)
        }
    }
}

fn execute(cli: Cli, host: Host) -> Result<u8, CliError> {
    let settings = cli.global.settle()?;
    let mut console = Console::of_process(settings.color);
    let result = cli.command.execute(&settings, &host, &mut console);
    // What was written before a command failed is shown all the same.
    let written = console.finish();
    let code = result?;
    written.map(|()| code)
}

/// Was this program started without a standard output? Then whatever it writes there is lost.
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) fn has_no_stdout() -> bool {
    chongming_executor_process::was_stdout_closed()
}

#[cfg(not(all(feature = "process", target_os = "linux")))]
pub(crate) fn has_no_stdout() -> bool {
    false
}

/// A limit of file sizes (`ulimit -f`) is an error of the write that meets it, and not the end of the program.
#[cfg(all(feature = "process", unix))]
fn survive_size_limits() {
    // Nothing asks whether it came. What cannot be registered stays as it is.
    let noted = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noted);
}

#[cfg(not(all(feature = "process", unix)))]
fn survive_size_limits() {}

fn answer(text: &str) -> Result<u8, CliError> {
    let mut console = Console::of_process(ColorChoice::Auto);
    console.write(text.as_bytes())?;
    console.finish()?;
    Ok(exit_codes::DONE)
}

fn report(result: Result<u8, CliError>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let error = match few_files() {
                Some(limit) => error.hint(format!(
                    "this process may have no more than {limit} files open, which is few; see `ulimit -n`"
                )),
                None => error,
            };
            print_error(&error);
            ExitCode::from(exit_codes::COMMAND_FAILED)
        }
    }
}

/// The limit of open files, if it is so low that hardly anything works; libraries then tell of rights or paths.
#[cfg(feature = "process")]
fn few_files() -> Option<u64> {
    const FEW: u64 = 64;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.filter(|limit| *limit < FEW)
}

#[cfg(not(feature = "process"))]
fn few_files() -> Option<u64> {
    None
}

/// The name that the user started, without its folder.
fn program_name(first: Option<&OsStr>) -> String {
    let stem = first.and_then(|path| Path::new(path).file_stem());
    stem.map_or_else(|| "chongming-task".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The guide's Rust, compiled and run with the doc tests.
#[cfg(all(doctest, feature = "process", feature = "sqlite"))]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;
