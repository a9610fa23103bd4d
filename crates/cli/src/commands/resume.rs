//! `resume`: continues paused tasks.

use clap::Args;

use crate::args::control::ControlArgs;

/// Continue paused tasks.
#[derive(Clone, Debug, Args)]
pub struct ResumeArgs {
    /// Which ones, and why.
    #[command(flatten)]
    pub control: ControlArgs,
}
