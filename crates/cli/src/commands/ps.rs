//! `ps`: the tasks of a store.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use chongming_core::store::{TaskFilter, TaskStore};
use chongming_core::{BucketSet, Ownership, Status, StatusSet, TaskSnapshot};
use clap::Args;

use super::find;
use crate::args::global::{Settings, Verbosity};
use crate::args::values;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, Opened};
use crate::output::console::{Console, print_note, terminal_size};
use crate::output::json::{self, JsonArray};
use crate::output::live::Live;
use crate::views::task::{self, TaskJson};

/// List tasks, the newest first.
///
/// Without --all or --status, only those that have not ended.
#[derive(Clone, Debug, Args)]
pub(crate) struct PsArgs {
    /// Ended tasks too
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Only tasks in the buckets of --owned-buckets
    #[arg(long)]
    pub(crate) mine: bool,

    /// Only tasks in this state; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',', value_parser = values::status())]
    pub(crate) statuses: Vec<Status>,

    /// Only tasks in these buckets, such as 0-15,20
    #[arg(long, value_name = "BUCKETS", allow_hyphen_values = true)]
    pub(crate) bucket: Option<BucketSet>,

    /// Only tasks with this tag; may be repeated, all of them count
    #[arg(long = "tag", value_name = "TAG", allow_hyphen_values = true, value_parser = values::text)]
    pub(crate) tags: Vec<String>,

    /// Only tasks of this name
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, value_parser = values::name)]
    pub(crate) name: Option<String>,

    /// At most so many; 0 for all
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1000, value_parser = values::integer(0..=usize::MAX))]
    pub(crate) limit: usize,

    /// Show it anew again and again [default interval: 1s]
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = values::positive_duration
    )]
    pub(crate) watch: Option<Duration>,
}

/// Lists them, once or again and again.
pub(super) fn execute(
    args: &PsArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let Opened { store, ownership } = open_store::open(settings)?;
    let listing = Listing { store, filter: filter(args, settings, &ownership)?, limit: args.limit };
    match args.watch {
        None if settings.json => listing.json(settings, console)?,
        None => listing.table(console)?,
        Some(interval) => watch(&listing, interval, settings, console)?,
    }
    Ok(exit_codes::DONE)
}

fn filter(
    args: &PsArgs,
    settings: &Settings,
    ownership: &Ownership,
) -> Result<TaskFilter, CliError> {
    let statuses = match (args.statuses.as_slice(), args.all) {
        ([], true) => None,
        ([], false) => Some(StatusSet::unfinished()),
        (statuses, _) => Some(statuses.iter().copied().collect()),
    };
    let mine = if args.mine { Some(settings.require_owned_buckets("--mine")?) } else { None };
    // Who owns all buckets owns the tasks without one too.
    let mine = mine.filter(|_| !ownership.owns_all_buckets());
    let asked = args.bucket.as_ref();
    if let Some(bucket) = asked.and_then(|asked| asked.as_slice().last())
        && *bucket >= ownership.num_buckets().get()
    {
        let buckets = ownership.num_buckets();
        return Err(CliError::new(format!(
            "--bucket: bucket {bucket} does not exist: the store has {buckets} buckets"
        ))
        .hint(format!("they are numbered 0 to {}", buckets.get() - 1)));
    }
    let buckets = match (mine, asked) {
        (Some(mine), Some(asked)) => {
            Some(asked.as_slice().iter().copied().filter(|bucket| mine.contains(*bucket)).collect())
        }
        (Some(buckets), None) | (None, Some(buckets)) => Some(buckets.clone()),
        (None, None) => None,
    };
    Ok(TaskFilter {
        statuses,
        buckets,
        tags: args.tags.iter().map(|tag| tag.as_str().into()).collect(),
        name: args.name.as_deref().map(Into::into),
        ..TaskFilter::default()
    })
}

/// What is listed.
struct Listing {
    store: Arc<dyn TaskStore>,
    filter: TaskFilter,
    limit: usize,
}

impl Listing {
    fn each(
        &self,
        each: impl FnMut(TaskSnapshot) -> Result<(), CliError>,
    ) -> Result<bool, CliError> {
        find::each_task(&self.store, &self.filter, self.limit, each)
    }

    fn tasks(&self) -> Result<(Vec<TaskSnapshot>, bool), CliError> {
        let mut tasks = Vec::new();
        let is_cut = self.each(|task| {
            tasks.push(task);
            Ok(())
        })?;
        Ok((tasks, is_cut))
    }

    /// An array on several lines, written while it is read.
    fn json(&self, settings: &Settings, console: &mut Console) -> Result<(), CliError> {
        let mut array = JsonArray::default();
        let is_cut = self.each(|task| array.element(console, &TaskJson::from(&task)))?;
        array.end(console)?;
        if is_cut && settings.verbosity > Verbosity::Quiet {
            print_note(&self.cut());
        }
        Ok(())
    }

    fn table(&self, console: &mut Console) -> Result<(), CliError> {
        let lines = self.lines(console)?;
        console.lines(&lines)
    }

    fn lines(&self, console: &Console) -> Result<Vec<String>, CliError> {
        let (tasks, is_cut) = self.tasks()?;
        let mut lines = task::table(&tasks, SystemTime::now().into())
            .lines(console.table_width(), console.out_color());
        if is_cut {
            lines.push(self.cut());
        }
        Ok(lines)
    }

    /// The array on one line.
    fn json_line(&self, console: &mut Console) -> Result<(), CliError> {
        let (tasks, _) = self.tasks()?;
        json::write_value(console, &tasks.iter().map(TaskJson::from).collect::<Vec<_>>())
    }

    fn cut(&self) -> String {
        format!("there are more than these {}; --limit 0 shows all", self.limit)
    }
}

/// Shows it anew until the reader leaves or the program is ended.
fn watch(
    listing: &Listing,
    interval: Duration,
    settings: &Settings,
    console: &mut Console,
) -> Result<(), CliError> {
    let mut live = (console.out_is_terminal() && !settings.json).then(|| Live::new(io::stdout()));
    let mut is_first = true;
    while !console.reader_left() {
        match &mut live {
            Some(live) => {
                live.draw(&listing.lines(console)?, terminal_size()).map_err(|error| {
                    CliError::new(format!("cannot write to standard output: {error}"))
                })?
            }
            None if settings.json => listing.json_line(console)?,
            None => {
                if !is_first {
                    console.line("")?;
                }
                listing.table(console)?;
            }
        }
        console.flush()?;
        is_first = false;
        thread::sleep(interval);
    }
    Ok(())
}
