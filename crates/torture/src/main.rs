//! Many supervisors on one store, a monkey that kills, freezes and cuts them off, and a referee who judges
//! what they leave behind: `chongming-torture [--seconds S | --minutes N] [--seed S] [--db sqlite|postgres|DSN]`.
//!
//! One program plays every part, so that one build is enough: started as `chongming-task` it is the command
//! line, as `node` an embedding program, as `body` what a command runs.
#![forbid(unsafe_code)]

mod body;
mod checker;
mod disk;
mod history;
mod marks;
mod monkey;
mod node;
mod options;
mod programs;
mod random;
mod run;
mod store;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use options::Options;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let plays_command_line = |name| [programs::COMMAND_LINE, programs::GUARDIAN].contains(name);
    let result = match args.as_slice() {
        [name, ..] if plays_command_line(name) => return chongming_task::main(),
        [_, "body", kind, ms] => body::run(kind, ms),
        [_, "node", rest @ ..] => node_orders(rest).and_then(node::run).map(|()| ExitCode::SUCCESS),
        [_, rest @ ..] => Options::parse(rest).and_then(|options| run::torture(&options)),
        [] => Err("no program name".to_owned()),
    };
    result.unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::FAILURE
    })
}

fn node_orders(args: &[&str]) -> Result<node::Orders, String> {
    let [folder, number, database, lease, seed] = args else {
        return Err("a node wants folder, number, database, lease in ms, seed".to_owned());
    };
    let read = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    Ok(node::Orders {
        folder: PathBuf::from(folder),
        number: u32::try_from(read(number)?).map_err(|error| error.to_string())?,
        database: store::Database::parse(database),
        lease: Duration::from_millis(read(lease)?),
        seed: read(seed)?,
    })
}
