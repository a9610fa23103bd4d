//! One file per verb: its options, whose doc comment is the help text, and what it does.

mod attempt_files;
pub(crate) mod buckets;
pub(crate) mod cancel;
pub(crate) mod completions;
mod control;
pub(crate) mod doctor;
pub(crate) mod explain;
mod find;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod pause;
pub(crate) mod pipeline;
pub(crate) mod prune;
pub(crate) mod ps;
pub(crate) mod reconcile;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tasks;
pub(crate) mod wait;

use clap::Subcommand;

use crate::Host;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::open_store;
use crate::output::console::Console;

/// What to do.
#[derive(Clone, Debug, Subcommand)]
// A doc comment on one of them would replace the help text of its arguments.
pub(crate) enum Command {
    Run(run::RunArgs),
    Pipeline(pipeline::PipelineArgs),
    Tasks(tasks::TasksArgs),
    Ps(ps::PsArgs),
    Status(status::StatusArgs),
    History(history::HistoryArgs),
    Logs(logs::LogsArgs),
    Stop(stop::StopArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Cancel(cancel::CancelArgs),
    Wait(wait::WaitArgs),
    Explain(explain::ExplainArgs),
    Stats(stats::StatsArgs),
    Buckets(buckets::BucketsArgs),
    Nodes(nodes::NodesArgs),
    Doctor(doctor::DoctorArgs),
    Reconcile(reconcile::ReconcileArgs),
    Prune(prune::PruneArgs),
    Report(report::ReportArgs),
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Does it, as part of this program, and gives the exit code.
    pub(crate) fn execute(
        self,
        settings: &Settings,
        host: &Host,
        console: &mut Console,
    ) -> Result<u8, CliError> {
        match self {
            Self::Run(args) => run::execute(&args, settings, host, console),
            Self::Pipeline(args) => pipeline::execute(&args, settings, host, console),
            Self::Tasks(args) => {
                open_store::check_buckets(settings)?;
                tasks::execute(&args, settings, host, console)
            }
            Self::Ps(args) => ps::execute(&args, settings, console),
            Self::Status(args) => status::execute(&args, settings, console),
            Self::History(args) => history::execute(&args, settings, console),
            Self::Logs(args) => logs::execute(&args, settings, console),
            Self::Stop(args) => stop::execute(&args, settings, console),
            Self::Pause(args) => pause::execute(&args, settings, console),
            Self::Resume(args) => resume::execute(&args, settings, console),
            Self::Cancel(args) => cancel::execute(&args, settings, console),
            Self::Wait(args) => wait::execute(&args, settings, console),
            Self::Explain(args) => explain::execute(&args, settings, console),
            Self::Stats(stats::StatsArgs {}) => stats::execute(settings, console),
            Self::Buckets(buckets::BucketsArgs {}) => buckets::execute(settings, console),
            Self::Nodes(nodes::NodesArgs {}) => nodes::execute(settings, console),
            Self::Doctor(args) => doctor::execute(args, settings, console),
            Self::Reconcile(args) => reconcile::execute(&args, settings, console),
            Self::Prune(args) => prune::execute(args, settings, console),
            Self::Report(args) => report::execute(&args),
            Self::Completions(args) => {
                open_store::check_buckets(settings)?;
                completions::execute(args, &host.program, console)
            }
        }
    }
}
