//! `prune`: removes what ended long ago.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chongming_core::store::{Now, PruneRequest, Pruned, TaskFilter, TaskStore};
use chongming_core::{Status, StatusSet, Timestamp};
use clap::Args;
use serde::Serialize;

use super::attempt_files::{self, Place, Places};
use super::find;
use crate::args::global::{Settings, Verbosity};
use crate::duration;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::{Console, print_note};
use crate::output::json;

/// Tasks that are deleted in one step: others get their turn in between.
const BATCH: usize = 512;

/// Delete tasks that ended long ago, with their history, logs and artifacts. Never one that has not ended.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PruneArgs {
    /// How long ago they must have ended
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration::parse)]
    pub(crate) older_than: Duration,

    /// Only say what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The object of `prune`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PrunedJson {
    /// Tasks that were deleted, or would be.
    pub(crate) tasks: usize,
    /// Rows of dead nodes likewise.
    pub(crate) nodes: usize,
    /// Nothing was deleted.
    pub(crate) dry_run: bool,
}

/// Deletes them, batch by batch until nothing is left.
pub(super) fn execute(
    args: PruneArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let before = Timestamp::from(SystemTime::now()).before(args.older_than);
    let stuck =
        if args.dry_run { Stuck::default() } else { delete_files(&store, before, settings)? };
    // A store prunes by time: what ended later than a task whose files are still there has to wait for it.
    let before = stuck.since.map_or(before, |since| since.min(before));
    let mut sum = Pruned::default();
    loop {
        // Counting deletes nothing, so a second count would find the same again.
        let limit = if args.dry_run { usize::MAX } else { BATCH };
        let request = PruneRequest { before, limit, dry_run: args.dry_run };
        let pruned = store.prune(&request, Now::Store).map_err(store_error)?;
        sum.tasks += pruned.tasks;
        sum.nodes += pruned.nodes;
        if args.dry_run || pruned.tasks == 0 {
            break;
        }
    }
    let Pruned { tasks, nodes } = sum;
    if settings.json {
        json::write_value(console, &PrunedJson { tasks, nodes, dry_run: args.dry_run })?;
    } else {
        let what = if args.dry_run { "would delete" } else { "deleted" };
        console.line(&format!("{what} {tasks} tasks and {nodes} rows of dead nodes"))?;
    }
    stuck.problem().map_or(Ok(exit_codes::DONE), Err)
}

/// Tasks whose files could not be deleted.
#[derive(Default)]
struct Stuck {
    count: usize,
    /// What was wrong with the first that was found.
    problem: Option<CliError>,
    /// When the first of them ended.
    since: Option<Timestamp>,
}

impl Stuck {
    fn add(&mut self, problem: CliError, ended: Timestamp) {
        self.count += 1;
        self.problem.get_or_insert(problem);
        self.since = Some(self.since.map_or(ended, |since| since.min(ended)));
    }

    /// All of it, as one error.
    fn problem(self) -> Option<CliError> {
        let problem = self.problem?;
        let others = match self.count {
            1 => String::new(),
            count => format!(", and those of {} other tasks neither", count - 1),
        };
        Some(
            CliError::new(format!("{problem}{others}"))
                .hint("they are still in the database, and so is what ended after the first of them: mend this and try again"),
        )
    }
}

/// Deletes the files of the tasks that will be deleted. They go first: as long as the id stands, no new task
/// of that id can have written others.
fn delete_files(
    store: &Arc<dyn TaskStore>,
    before: Timestamp,
    settings: &Settings,
) -> Result<Stuck, CliError> {
    let places = Places::read(store, settings)?;
    let mut elsewhere: BTreeMap<(String, PathBuf), usize> = BTreeMap::new();
    let statuses = Some(StatusSet::of(Status::is_terminal));
    let filter = TaskFilter { statuses, ..TaskFilter::default() };
    let mut stuck = Stuck::default();
    find::each_task(store, &filter, 0, |task| {
        let Some(ended) = task.ended_at.filter(|ended| *ended < before) else { return Ok(()) };
        // Without an attempt there is nothing.
        if task.attempt == 0 {
            return Ok(());
        }
        match places.of(&task)? {
            Place::Here(root) => {
                if let Err(problem) = attempt_files::delete(&root, &task) {
                    stuck.add(problem, ended);
                }
            }
            Place::Elsewhere { host, root } => *elsewhere.entry((host, root)).or_default() += 1,
            Place::Nowhere { .. } => {}
        }
        Ok(())
    })?;
    if settings.verbosity > Verbosity::Quiet {
        for ((host, root), tasks) in elsewhere {
            let root = root.display();
            print_note(&format!(
                "the logs of {tasks} of them are left on the host {host}, in {root}"
            ));
        }
    }
    Ok(stuck)
}
