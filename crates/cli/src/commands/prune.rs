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
    if !args.dry_run {
        delete_files(&store, before, settings)?;
    }
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
    Ok(exit_codes::DONE)
}

/// Deletes the files of the tasks that will be deleted. They go first: as long as the id stands, no new task
/// of that id can have written others.
fn delete_files(
    store: &Arc<dyn TaskStore>,
    before: Timestamp,
    settings: &Settings,
) -> Result<(), CliError> {
    let places = Places::read(store, settings)?;
    let mut elsewhere: BTreeMap<(String, PathBuf), usize> = BTreeMap::new();
    let statuses = Some(StatusSet::of(Status::is_terminal));
    let filter = TaskFilter { statuses, ..TaskFilter::default() };
    find::each_task(store, &filter, 0, |task| {
        // Without an attempt there is nothing.
        if task.attempt == 0 || task.ended_at.is_none_or(|ended| ended >= before) {
            return Ok(());
        }
        match places.of(&task)? {
            Place::Here(root) => attempt_files::delete(&root, &task)?,
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
    Ok(())
}
