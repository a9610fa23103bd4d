//! The child's side of the task protocol: this program, run again to carry one attempt of one of its tasks.
//!
//! It is told so by a variable in its environment that names the pipe which it has as descriptor 4. Programs
//! that a task starts inherit the variable but not the pipe, so they are never taken for a carrier.

mod carry;
mod uplink;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::exit;

use chongming_core::{Failure, FailureKind, Registry, TaskDefinition};

use crate::command::SERVE;
use crate::module::entry::Answer;
use crate::protocol::{CHILD_IN, CHILD_OUT, Down, Up};
use crate::sys::{inode_of_inherited, take_inherited};
use uplink::Uplink;

/// Serves what is asked for, and never returns, if this process was started for that.
pub(crate) fn run_if_asked(definitions: impl FnOnce() -> Vec<TaskDefinition>) {
    if !is_meant_to_serve() {
        return;
    }
    let (Some(orders), Some(answers)) = (take_inherited(CHILD_IN), take_inherited(CHILD_OUT))
    else {
        eprintln!("{SERVE} is set, but this process lacks descriptor {CHILD_IN}; unset it");
        exit(1);
    };
    let (mut orders, uplink) = (BufReader::new(File::from(orders)), Uplink::start(answers));
    let first = next(&mut orders);
    let served = match (first, registry(definitions())) {
        (Ok(_), Err(problem)) | (Err(problem), _) => Err(problem),
        (Ok(Some(Down::Start(start))), Ok(registry)) => {
            carry::carry(start, &registry, orders, &uplink)
        }
        (Ok(Some(Down::List)), Ok(registry)) => {
            uplink.send(&Answer::line(&registry));
            Ok(())
        }
        (
            Ok(Some(Down::Pause { .. } | Down::Resume | Down::Stop { .. } | Down::Unknown)),
            Ok(_),
        ) => {
            Err("its supervisor asks for what this version of the library does not know".to_owned())
        }
        // The supervisor is gone.
        (Ok(None), Ok(_)) => exit(1),
    };
    let code = match served {
        Ok(()) => 0,
        Err(problem) => {
            let failure = Failure::new(FailureKind::LaunchFailed, problem);
            uplink.send(&Up::Failure(failure).encode());
            1
        }
    };
    exit(code);
}

/// Was this process started to serve a task, whether or not it does?
pub(crate) fn is_meant_to_serve() -> bool {
    let pipe: Option<u64> = std::env::var(SERVE).ok().and_then(|pipe| pipe.parse().ok());
    pipe.is_some() && pipe == inode_of_inherited(CHILD_OUT)
}

fn registry(definitions: Vec<TaskDefinition>) -> Result<Registry, String> {
    let mut registry = Registry::default();
    for definition in definitions {
        registry.register(definition).map_err(|error| error.to_string())?;
    }
    Ok(registry)
}

/// The next order; `None` at the end.
fn next(orders: &mut impl BufRead) -> Result<Option<Down>, String> {
    let mut line = Vec::new();
    match orders.read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Ok(None),
        Ok(_) => Down::parse(&line)
            .map(Some)
            .map_err(|error| format!("an order of its supervisor cannot be read: {error}")),
    }
}
