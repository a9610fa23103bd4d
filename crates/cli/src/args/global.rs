//! The options of every command: as written, and as settled.

use std::ffi::OsString;
use std::num::NonZeroU32;

use chongming_core::{BucketSet, Ownership};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args};

use super::values;
use crate::database::Database;
use crate::error::CliError;
use crate::output::color::ColorChoice;

/// Options of every command, as written. Each can also come from a variable of the environment.
///
/// Values of the environment are never shown in help: one of them may hold a password.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The database: the path of an SQLite file, or postgresql://user@host/database
    #[arg(
        long,
        global = true,
        value_name = "DATABASE",
        default_value = "tasks.db",
        env = "CHONGMING_DB",
        hide_env_values = true
    )]
    pub(crate) db: OsString,

    /// How many buckets the store has [default: what the store recorded, else 64]
    #[arg(
        long,
        global = true,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = values::num_buckets(),
        env = "CHONGMING_NUM_BUCKETS",
        hide_env_values = true
    )]
    pub(crate) num_buckets: Option<NonZeroU32>,

    /// The buckets that this node owns, such as 0-15,20 [default: all, undeclared]
    #[arg(
        long,
        global = true,
        value_name = "BUCKETS",
        allow_hyphen_values = true,
        env = "CHONGMING_OWNED_BUCKETS",
        hide_env_values = true
    )]
    pub(crate) owned_buckets: Option<BucketSet>,

    /// Who this node is [default: host and process]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_parser = values::name,
        env = "CHONGMING_OWNER",
        hide_env_values = true
    )]
    pub(crate) owner: Option<String>,

    /// Write JSON to stdout instead of text for people
    #[arg(
        long,
        global = true,
        value_parser = values::switch(),
        overrides_with = "json",
        env = "CHONGMING_JSON",
        hide_env_values = true
    )]
    pub(crate) json: bool,

    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        env = "CHONGMING_COLOR",
        hide_env_values = true
    )]
    pub(crate) color: ColorChoice,

    /// Tell each change of a task's status on stderr
    #[arg(
        short,
        long,
        global = true,
        action = ArgAction::Count,
        value_parser = values::repeated(),
        env = "CHONGMING_VERBOSE",
        hide_env_values = true
    )]
    pub(crate) verbose: u8,

    /// Write nothing but results and errors
    #[arg(
        short,
        long,
        global = true,
        value_parser = values::switch(),
        overrides_with = "quiet",
        env = "CHONGMING_QUIET",
        hide_env_values = true
    )]
    pub(crate) quiet: bool,
}

/// Options of every command, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The database that is worked on.
    pub(crate) database: Database,
    /// The number of buckets, if it was given. The store may have recorded another, which is then
    /// an error.
    pub(crate) num_buckets: Option<NonZeroU32>,
    /// The buckets that this node declares to own, if any; all of them exist.
    pub(crate) owned_buckets: Option<BucketSet>,
    /// Who this node is, if it was given.
    pub(crate) owner: Option<String>,
    /// Whether results are JSON.
    pub(crate) json: bool,
    /// When to use colour.
    pub(crate) color: ColorChoice,
    /// How much is said on stderr.
    pub(crate) verbosity: Verbosity,
}

/// How much is said on stderr beside errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Nothing.
    Quiet,
    /// Progress and the task's output.
    Normal,
    /// Each change of status as well.
    Verbose,
}

impl GlobalArgs {
    /// Of -v and -q, what was typed beats what a variable says; else -q wins.
    pub(super) fn settle_verbosity(&mut self, matches: &ArgMatches) {
        let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if typed("verbose") && !typed("quiet") {
            self.quiet = false;
        }
    }

    /// Settles what can be settled without a store.
    pub(crate) fn settle(self) -> Result<Settings, CliError> {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1..) => Verbosity::Verbose,
        };
        Ok(Settings {
            database: Database::parse(self.db)?,
            num_buckets: self.num_buckets,
            owned_buckets: self.owned_buckets,
            owner: self.owner,
            json: self.json,
            color: self.color,
            verbosity,
        })
    }
}

impl Settings {
    /// The owned buckets among this many. Every command asks before it does anything else: a bucket that
    /// does not exist would look like one without tasks.
    pub(crate) fn ownership(&self, num_buckets: NonZeroU32) -> Result<Ownership, CliError> {
        Ownership::new(num_buckets, self.owned_buckets.clone()).map_err(|error| {
            CliError::new(format!("--owned-buckets: {error}"))
                .hint("--num-buckets says how many a new store gets")
        })
    }

    /// The owned buckets for an option that makes no sense without them.
    pub(crate) fn require_owned_buckets(&self, option: &str) -> Result<&BucketSet, CliError> {
        self.owned_buckets.as_ref().ok_or_else(|| {
            CliError::new(format!("{option} needs --owned-buckets"))
                .hint("say which buckets are yours, such as --owned-buckets 0-15")
        })
    }
}
