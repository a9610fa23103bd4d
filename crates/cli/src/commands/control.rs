//! What `stop`, `pause`, `resume` and `cancel` do: a request to each task's holder, and what came of it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::store::{CommandKind, ReceiptKind, StoreError, TaskStore};
use chongming_core::{
    Answer, ControlClient, ControlRefusal, Sent, Status, TaskId, Text, host_name,
};

use super::find;
use crate::args::control::ControlArgs;
use crate::args::global::Settings;
use crate::error::CliError;
use crate::exit_codes;
use crate::open_store::{self, store_error};
use crate::output::console::{Console, print_error};
use crate::output::json;
use crate::views::control::{Verdict, table};

/// Pause between two looks at a task that is to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks at a task between two looks at its holder.
const LOOKS_PER_HOLDER: u32 = 25;
/// How often a request is sent anew because the task changed hands.
const SENDS: usize = 5;

/// Controls tasks through this store.
pub(super) fn client(store: &Arc<dyn TaskStore>, settings: &Settings) -> ControlClient {
    let issuer: Text = match &settings.owner {
        Some(owner) => owner.as_str().into(),
        None => format!("{}:{}", host_name(), std::process::id()).into(),
    };
    ControlClient::new(Arc::clone(store), issuer)
}

/// Asks all of these tasks, then waits for each if told to.
pub(super) fn execute(
    kind: CommandKind,
    args: &ControlArgs,
    settings: &Settings,
    console: &mut Console,
) -> Result<u8, CliError> {
    let store = open_store::open(settings)?.store;
    let control =
        Control { client: client(&store, settings), store, kind, reason: args.reason.as_deref() };
    let until = args.wait.map(|wait| Instant::now() + wait);
    let sent: Result<Vec<Sent>, StoreError> = args.ids.iter().map(|id| control.send(id)).collect();
    let mut verdicts = Vec::new();
    let mut code = exit_codes::DONE;
    for (id, sent) in args.ids.iter().zip(sent.map_err(store_error)?) {
        let is_unknown = sent == Sent::Refused(ControlRefusal::NotFound);
        let verdict = control.verdict(id, sent, until).map_err(store_error)?;
        if is_unknown {
            print_error(&find::unknown(&control.store, id));
            code = exit_codes::COMMAND_FAILED;
        } else if !verdict.is_well() && code == exit_codes::DONE {
            code = exit_codes::NOT_SUCCEEDED;
        }
        verdicts.push(verdict);
    }
    if settings.json {
        json::write_array(console, &verdicts)?;
    } else {
        console.table(&table(&verdicts))?;
    }
    Ok(code)
}

/// One kind of request.
struct Control<'a> {
    client: ControlClient,
    store: Arc<dyn TaskStore>,
    kind: CommandKind,
    reason: Option<&'a str>,
}

/// What a wait brought: accepted, confirmed, in words.
type Waited = (bool, bool, String);

impl Control<'_> {
    fn send(&self, id: &TaskId) -> Result<Sent, StoreError> {
        self.client.send(id, self.kind, self.reason)
    }

    fn verdict(
        &self,
        id: &TaskId,
        sent: Sent,
        until: Option<Instant>,
    ) -> Result<Verdict, StoreError> {
        let (accepted, confirmed, result) = match until {
            Some(until) => {
                let (accepted, confirmed, result) = self.wait(id, sent, until)?;
                (accepted, Some(confirmed), result)
            }
            None => match sent {
                Sent::Command(_) => (true, None, "sent to its holder".to_owned()),
                Sent::Done(status) => (true, None, done(status)),
                Sent::Refused(refusal) => (false, None, refusal.to_string()),
            },
        };
        Ok(Verdict { task_id: id.clone(), accepted, confirmed, result })
    }

    fn wait(&self, id: &TaskId, mut sent: Sent, until: Instant) -> Result<Waited, StoreError> {
        for sends in 1..=SENDS {
            let command = match sent {
                Sent::Done(status) => return Ok((true, true, done(status))),
                // The first request may have come to its end together with its holder.
                Sent::Refused(ControlRefusal::Ended(status)) if sends > 1 => {
                    return Ok((true, self.end() == Some(status), format!("ended as {status}")));
                }
                // A holder that is only frozen will find the request when it wakes.
                Sent::Refused(ControlRefusal::NoLiveHolder(status)) if sends > 1 => {
                    let result = format!(
                        "it is {status} and its holder has fallen silent; the request stands, should it wake"
                    );
                    return Ok((true, false, result));
                }
                Sent::Refused(refusal) => return Ok((false, false, refusal.to_string())),
                Sent::Command(command) => command,
            };
            let left = until.saturating_duration_since(Instant::now());
            match self.client.receipt(id, &command, left)? {
                Answer::Receipt(receipt) => match receipt.kind {
                    ReceiptKind::Applied => return self.applied(id, until),
                    ReceiptKind::NotConfirmed => {
                        return Ok((true, false, receipt.detail.to_string()));
                    }
                    ReceiptKind::Refused | ReceiptKind::AlreadyEnded => {
                        return Ok((false, false, receipt.detail.to_string()));
                    }
                    // Another holds the task by now: ask that one.
                    ReceiptKind::Superseded => {}
                },
                // Perhaps it can be done without a holder.
                Answer::HolderGone => {}
                Answer::TimedOut => {
                    let result = "its holder has not answered in time; the request stands";
                    return Ok((true, false, result.to_owned()));
                }
            }
            sent = self.send(id)?;
        }
        Ok((true, false, "the task kept changing hands; try again".to_owned()))
    }

    /// How a task ends that is asked to.
    fn end(&self) -> Option<Status> {
        match self.kind {
            CommandKind::Stop => Some(Status::Stopped),
            CommandKind::Cancel => Some(Status::Cancelled),
            CommandKind::Pause | CommandKind::Resume | CommandKind::Explain => None,
        }
    }

    /// The holder has done its part: what a stop or cancel comes to shows when the task ends.
    fn applied(&self, id: &TaskId, until: Instant) -> Result<Waited, StoreError> {
        let Some(wanted) = self.end() else { return Ok((true, true, "applied".to_owned())) };
        let mut looks = 0_u32;
        loop {
            let Some(task) = self.store.get(id)? else {
                return Ok((true, false, "it was pruned meanwhile".to_owned()));
            };
            let status = task.status();
            if status.is_terminal() {
                return Ok((true, status == wanted, format!("ended as {status}")));
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_HOLDER) && self.client.is_abandoned(&task)? {
                let result = format!("it is {status} and its holder is gone; reconcile settles it");
                return Ok((true, false, result));
            }
            if Instant::now() >= until {
                return Ok((true, false, format!("still {status}; the request stands")));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn done(status: Status) -> String {
    format!("{status} directly: nobody held it and nothing of it was running")
}
