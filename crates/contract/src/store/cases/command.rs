//! The control channel.

use std::time::Duration;

use chongming_core::store::{
    Command, CommandKind, NewCommand, Now, Receipt, ReceiptKind, TaskStore,
};
use chongming_core::{CommandId, TaskId, Timestamp};

use crate::breach::{Outcome, present, same};
use crate::store::fixture::Data;
use crate::store::sample::{MINUTE, at, command, incarnation, node, now};

/// Claims for a minute; the ids.
fn claim(store: &dyn TaskStore, holder: &str, limit: usize, time: i64) -> Outcome<Vec<String>> {
    let claimed = store.claim_commands(&incarnation(holder)?, limit, MINUTE, now(time))?;
    Ok(claimed.iter().map(|command| command.request.id.to_string()).collect())
}

fn claims(
    store: &dyn TaskStore,
    holder: &str,
    limit: usize,
    time: i64,
    expected: &[&str],
) -> Outcome {
    let what = format!("claimed by {holder}, at most {limit}, after {time} s");
    let expected = expected.iter().map(|id| (*id).to_owned()).collect();
    same(&what, claim(store, holder, limit, time)?, expected)
}

fn submit(store: &dyn TaskStore, ids: &[&str]) -> Outcome {
    for id in ids {
        store.submit_command(&command(id, "task", "life-1")?)?;
    }
    Ok(())
}

fn applied() -> Receipt {
    Receipt::new(ReceiptKind::Applied, "stopped")
}

fn of_task(store: &dyn TaskStore, task: &str) -> Outcome<Vec<Command>> {
    Ok(store.commands(&TaskId::new(task)?)?)
}

pub(crate) fn reads_back(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let mut requests = Vec::new();
    for kind in CommandKind::ALL {
        let id = format!("command-{kind}");
        let request = NewCommand { kind: *kind, ..command(&id, "task", "life-1")? };
        store.submit_command(&request)?;
        requests.push(request);
    }
    let bare = NewCommand { reason: None, ..command("bare", "task", "life-1")? };
    store.submit_command(&bare)?;
    requests.push(bare);
    let expected: Vec<Command> = requests
        .into_iter()
        .map(|request| Command { request, claimed_until: None, receipt: None, completed_at: None })
        .collect();
    same("commands of the task, oldest first", of_task(&*store, "task")?, expected.clone())?;
    let claimed = store.claim_commands(&incarnation("life-1")?, 100, MINUTE, now(3))?;
    let expected: Vec<Command> = expected
        .into_iter()
        .map(|command| Command { claimed_until: Some(at(63)), ..command })
        .collect();
    same("claimed commands", claimed, expected.clone())?;
    same("commands of the task", of_task(&*store, "task")?, expected)
}

pub(crate) fn same_id_changes_nothing(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let first = command("c", "task", "life-1")?;
    store.submit_command(&first)?;
    let other = NewCommand { kind: CommandKind::Pause, ..command("c", "other", "life-2")? };
    store.submit_command(&other)?;
    let requests: Vec<_> = of_task(&*store, "task")?.into_iter().map(|c| c.request).collect();
    same("the command", requests, vec![first])?;
    same("a second one of its id", of_task(&*store, "other")?, vec![])?;
    store.complete_command(&CommandId::new("c")?, &applied(), now(1))?;
    store.submit_command(&command("c", "task", "life-1")?)?;
    claims(&*store, "life-1", 10, 2, &[])
}

pub(crate) fn only_its_holder_claims(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, holder) in [("a", "life-1"), ("b", "life-2"), ("c", "life-1")] {
        store.submit_command(&command(id, "task", holder)?)?;
    }
    claims(&*store, "life-3", 10, 0, &[])?;
    claims(&*store, "life-2", 10, 0, &["b"])?;
    claims(&*store, "life-1", 10, 0, &["a", "c"])
}

pub(crate) fn oldest_first(data: &dyn Data) -> Outcome {
    let store = data.connect();
    // The first that was handed in, whatever the clocks of those who ask say.
    for (id, time) in [("z", 40), ("m", 30), ("a", 90), ("k", 0)] {
        let request = NewCommand { issued_at: at(time), ..command(id, "task", "life-1")? };
        store.submit_command(&request)?;
    }
    claims(&*store, "life-1", 0, 0, &[])?;
    claims(&*store, "life-1", 1, 0, &["z"])?;
    claims(&*store, "life-1", 2, 0, &["m", "a"])?;
    claims(&*store, "life-1", usize::MAX, 0, &["k"])
}

pub(crate) fn claim_is_leased(data: &dyn Data) -> Outcome {
    let store = data.connect();
    submit(&*store, &["a", "b"])?;
    claims(&*store, "life-1", 1, 0, &["a"])?;
    claims(&*store, "life-1", 10, 30, &["b"])?;
    claims(&*store, "life-1", 10, 59, &[])?;
    claims(&*store, "life-1", 10, 60, &["a"])?;
    claims(&*store, "life-1", 10, 119, &["b"])?;
    claims(&*store, "life-1", 10, 120, &["a"])
}

pub(crate) fn receipt_ends_it(data: &dyn Data) -> Outcome {
    let store = data.connect();
    submit(&*store, &["a", "b"])?;
    claims(&*store, "life-1", 1, 0, &["a"])?;
    let (a, b) = (CommandId::new("a")?, CommandId::new("b")?);
    same("completing", store.complete_command(&a, &applied(), now(5))?, true)?;
    let other = Receipt::new(ReceiptKind::Refused, "no");
    same("completing again", store.complete_command(&a, &other, now(6))?, false)?;
    same("completing what nobody claimed", store.complete_command(&b, &other, now(7))?, true)?;
    claims(&*store, "life-1", 10, 1000, &[])?;
    let seen: Vec<_> = of_task(&*store, "task")?
        .into_iter()
        .map(|command| (command.receipt, command.completed_at))
        .collect();
    same("receipts", seen, vec![(Some(applied()), Some(at(5))), (Some(other), Some(at(7)))])
}

pub(crate) fn every_receipt_reads_back(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for kind in ReceiptKind::ALL {
        let id = format!("command-{kind}");
        let receipt = Receipt::new(*kind, format!("because of {kind} 🎉"));
        submit(&*store, &[&id])?;
        store.complete_command(&CommandId::new(id)?, &receipt, now(1))?;
    }
    let seen: Vec<_> =
        of_task(&*store, "task")?.into_iter().map(|command| command.receipt).collect();
    let expected = ReceiptKind::ALL
        .iter()
        .map(|kind| Some(Receipt::new(*kind, format!("because of {kind} 🎉"))));
    same("receipts", seen, expected.collect())
}

pub(crate) fn release_gives_it_back(data: &dyn Data) -> Outcome {
    let store = data.connect();
    submit(&*store, &["a", "b"])?;
    claims(&*store, "life-1", 10, 0, &["a", "b"])?;
    let a = CommandId::new("a")?;
    same("releasing", store.release_command(&a)?, true)?;
    let seen: Vec<_> = of_task(&*store, "task")?
        .into_iter()
        .map(|command| (command.claimed_until, command.receipt))
        .collect();
    same("claims and receipts", seen, vec![(None, None), (Some(at(60)), None)])?;
    claims(&*store, "life-1", 10, 1, &["a"])?;
    store.complete_command(&a, &applied(), now(2))?;
    same("releasing what is completed", store.release_command(&a)?, false)?;
    claims(&*store, "life-1", 10, 3, &[])
}

pub(crate) fn unknown_is_false(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let unknown = CommandId::new("unknown")?;
    same("releasing", store.release_command(&unknown)?, false)?;
    same("completing", store.complete_command(&unknown, &applied(), now(1))?, false)?;
    same("commands of an unknown task", of_task(&*store, "unknown")?, vec![])
}

pub(crate) fn belongs_to_one_task(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, task) in [("c", "one"), ("b", "two"), ("a", "one")] {
        store.submit_command(&command(id, task, "life-1")?)?;
    }
    for (task, expected) in [("one", vec!["c", "a"]), ("two", vec!["b"])] {
        let seen: Vec<String> =
            of_task(&*store, task)?.iter().map(|command| command.request.id.to_string()).collect();
        same(
            &format!("commands of {task}"),
            seen,
            expected.into_iter().map(String::from).collect(),
        )?;
    }
    Ok(())
}

/// What the store's own clock says: a lease of no length ends now.
fn store_clock(store: &dyn TaskStore) -> Outcome<Timestamp> {
    let clock = node("clock", "clock", at(0))?;
    Ok(store.beat(&clock, Duration::ZERO, Now::Store)?.lease_until)
}

pub(crate) fn store_clock_decides(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let between = |what: &str, early: Timestamp, time: Option<Timestamp>, late: Timestamp| {
        let time = present(what, time)?;
        same(
            &format!("{what}, which lies within {early} and {late}"),
            time.clamp(early, late),
            time,
        )
    };
    submit(&*store, &["a"])?;
    let holder = incarnation("life-1")?;
    let before = store_clock(&*store)?;
    let claimed = store.claim_commands(&holder, 9, MINUTE, Now::Store)?;
    let after = store_clock(&*store)?;
    let until = present("the claimed command", claimed.first())?.claimed_until;
    between("the end of its claim", before.after(MINUTE), until, after.after(MINUTE))?;
    let again = store.claim_commands(&holder, 9, MINUTE, Now::Store)?;
    same("a claim while the first one lasts", again.len(), 0)?;
    store.complete_command(&CommandId::new("a")?, &applied(), Now::Store)?;
    let end = store_clock(&*store)?;
    let completed = of_task(&*store, "task")?.into_iter().next();
    let completed = present("the command", completed)?.completed_at;
    between("the time of its receipt", after, completed, end)
}
