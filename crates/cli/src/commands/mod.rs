//! One file per verb: its options, whose doc comment is the help text, and what it does.

pub mod buckets;
pub mod cancel;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod history;
pub mod logs;
pub mod nodes;
pub mod pause;
pub mod pipeline;
pub mod prune;
pub mod ps;
pub mod reconcile;
pub mod resume;
pub mod run;
pub mod stats;
pub mod status;
pub mod stop;
pub mod tasks;
pub mod wait;

use clap::Subcommand;

use crate::args::global::Settings;
use crate::error::CliError;
use crate::open_store;
use crate::output::console::Console;

/// What to do.
#[derive(Clone, Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help text of the arguments")]
pub enum Command {
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
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Does it and gives the exit code. `program` is the name that the user started.
    pub fn execute(
        self,
        settings: &Settings,
        program: &str,
        console: &mut Console,
    ) -> Result<u8, CliError> {
        match self {
            Self::Tasks(args) => tasks::execute(&args, settings, console),
            Self::Completions(args) => completions::execute(args, program, console),
            Self::Run(_)
            | Self::Pipeline(_)
            | Self::Ps(_)
            | Self::Status(_)
            | Self::History(_)
            | Self::Logs(_)
            | Self::Stop(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_)
            | Self::Wait(_)
            | Self::Explain(_)
            | Self::Stats(_)
            | Self::Buckets(_)
            | Self::Nodes(_)
            | Self::Doctor(_)
            | Self::Reconcile(_)
            | Self::Prune(_) => Err(open_store::missing(&settings.database)),
        }
    }
}
