//! `wait`: until tasks have ended.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use chongming_core::{Status, TaskId, TaskSnapshot};
use clap::Args;

use super::{control, find};
use crate::args::global::{Settings, Verbosity};
use crate::args::values;
use crate::duration;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::{Console, print_note};
use crate::output::json;
use crate::views::task::{TaskJson, summary_lines};

/// Pause between two looks, at first and at most.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// Pause between two looks whether the holders live.
const HOLDERS_EVERY: Duration = Duration::from_secs(2);

/// Wait until all of these tasks have ended.
///
/// Exit code 3 unless all succeeded in time.
#[derive(Clone, Debug, Args)]
pub(crate) struct WaitArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true, value_parser = values::task_id)]
    pub(crate) ids: Vec<TaskId>,

    /// Wait no longer than this [default: without end]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
}

/// Waits.
pub(super) fn execute(
    args: &WaitArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let client = control::client(&store, settings);
    let until = args.timeout.map(|timeout| Instant::now() + timeout);
    let mut tasks: Vec<TaskSnapshot> =
        args.ids.iter().map(|id| find::task(&store, id)).collect::<Result<_, _>>()?;
    let mut pause = LOOK_EVERY.0;
    let mut next_holders = Instant::now();
    let mut told: BTreeSet<TaskId> = BTreeSet::new();
    loop {
        let unfinished = || tasks.iter().filter(|task| !task.status().is_terminal());
        if unfinished().next().is_none() || until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        if settings.verbosity > Verbosity::Quiet && Instant::now() >= next_holders {
            for task in unfinished() {
                if !told.contains(&task.id) && client.is_abandoned(task).map_err(store_error)? {
                    told.insert(task.id.clone());
                    print_note(&format!(
                        "`{}` is {} and nobody holds it: it will not end by itself",
                        task.id,
                        task.status()
                    ));
                }
            }
            next_holders = Instant::now() + HOLDERS_EVERY;
        }
        thread::sleep(match until {
            Some(until) => pause.min(until.saturating_duration_since(Instant::now())),
            None => pause,
        });
        pause = (pause * 2).min(LOOK_EVERY.1);
        for task in tasks.iter_mut().filter(|task| !task.status().is_terminal()) {
            *task = find::task(&store, &task.id)?;
        }
    }
    if settings.json {
        json::write_array(console, tasks.iter().map(TaskJson::from))?;
    } else {
        for task in &tasks {
            console.lines(&summary_lines(task, SystemTime::now().into()))?;
        }
    }
    let all_succeeded = tasks.iter().all(|task| task.status() == Status::Succeeded);
    Ok(if all_succeeded { exit_codes::DONE } else { exit_codes::NOT_SUCCEEDED })
}
