//! `explain`: why a task is where it is.

use std::sync::Arc;
use std::time::Duration;

use chongming_core::store::{CommandKind, Now, ReceiptKind, StoreError, TaskStore};
use chongming_core::{Answer, Sent, TaskSnapshot};
use clap::Args;
use serde::Serialize;

use super::{control, find};
use crate::args::control::TaskArg;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::Console;
use crate::output::escape::visible;
use crate::output::json;

/// How long the holder may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Say why a task is where it is: what it waits for, and who occupies that.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Which one.
    #[command(flatten)]
    pub(crate) task: TaskArg,
}

/// The object of `explain`.
#[derive(Debug, Serialize)]
pub(crate) struct ExplanationJson<'a> {
    /// The task.
    pub(crate) task_id: &'a str,
    /// Where it is.
    pub(crate) status: &'static str,
    /// Why it is there.
    pub(crate) explanation: &'a str,
    /// Who says so: its `holder`, or only the `store`.
    pub(crate) source: &'static str,
}

/// Asks the task's holder, or else the store.
pub(super) fn execute(
    args: &ExplainArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let task = find::task(&store, &args.task.id)?;
    let answer = ask(&store, &task, settings).map_err(store_error)?;
    let (explanation, source) = match answer {
        Ok(words) => (words, "holder"),
        Err(why) => (from_store(&store, &task, why).map_err(store_error)?, "store"),
    };
    if settings.json {
        let (task_id, status) = (task.id.as_str(), task.status().as_str());
        let explanation = ExplanationJson { task_id, status, explanation: &explanation, source };
        json::write_value(console, &explanation)?;
    } else {
        let line = format!("{} is {}: {explanation}", task.id, task.status());
        console.line(&visible(&line))?;
    }
    Ok(exit_codes::DONE)
}

/// What the holder says; an error says why it says nothing.
fn ask(
    store: &Arc<dyn TaskStore>,
    task: &TaskSnapshot,
    settings: &Settings,
) -> Result<Result<String, &'static str>, StoreError> {
    if task.status().is_terminal() {
        return Ok(Err("it has ended"));
    }
    let client = control::client(store, settings);
    let command = match client.send(&task.id, CommandKind::Explain, None)? {
        Sent::Command(command) => command,
        Sent::Done(_) | Sent::Refused(_) => return Ok(Err("it has no living holder to ask")),
    };
    Ok(match client.receipt(&task.id, &command, PATIENCE)? {
        Answer::Receipt(receipt) => match receipt.kind {
            ReceiptKind::Applied => Ok(receipt.detail.to_string()),
            ReceiptKind::NotConfirmed
            | ReceiptKind::Refused
            | ReceiptKind::AlreadyEnded
            | ReceiptKind::Superseded => Err("its holder no longer has it"),
        },
        Answer::HolderGone => Err("its holder died before it answered"),
        Answer::TimedOut => Err("its holder did not answer within 5 s"),
    })
}

/// All that the store knows, and that it is all.
fn from_store(
    store: &Arc<dyn TaskStore>,
    task: &TaskSnapshot,
    why: &str,
) -> Result<String, StoreError> {
    if task.status().is_terminal() {
        let last = store.history(&task.id, task.status_version().saturating_sub(1), 1)?;
        let cause = last.last().map_or_else(String::new, |last| {
            let reason = last.reason.as_deref().map(|reason| format!(" ({reason})"));
            format!(" by {}{}", last.trigger, reason.unwrap_or_default())
        });
        let failure = task.failure.as_deref().map(|failure| format!("; {failure}"));
        return Ok(format!("it has ended{cause}{}", failure.unwrap_or_default()));
    }
    let nodes = store.nodes(Now::Store)?;
    let holder = nodes.iter().find(|row| Some(&row.node.incarnation) == task.supervisor.as_ref());
    let lives = holder.is_some_and(|row| row.alive);
    let holder = match (holder, &task.supervisor) {
        (Some(row), _) => {
            let (state, node) = (if lives { "lives" } else { "is dead" }, &row.node);
            format!(
                "its holder {} ({}, process {} on {}) {state}, with a lease until {}",
                node.incarnation, node.owner, node.pid, node.host, row.lease_until
            )
        }
        (None, Some(supervisor)) => format!("its holder {supervisor} is unknown to the store"),
        (None, None) => "nobody holds it".to_owned(),
    };
    let advice = match (lives, task.status().is_adoptable()) {
        (true, _) => "ask again",
        (false, true) => "submit it again to go on, or stop it",
        (false, false) => "reconcile settles what became of it",
    };
    Ok(format!(
        "{why}, so this is only what the store knows: unchanged since {}, and {holder}; {advice}",
        task.updated_at
    ))
}
