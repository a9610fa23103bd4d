//! The control channel.

use std::time::Duration;

use chongming_core::store::{Command, NewCommand, Receipt};
use chongming_core::{CommandId, IncarnationId, TaskId, Timestamp};
use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};

use super::error::{Result, unreadable};
use super::records::{CommandRecord, decode, encode};
use super::tables::{COMMAND_IDS, COMMANDS, COMMANDS_OF_TASK, OPEN_COMMANDS, next};

pub(super) fn submit(transaction: &WriteTransaction, new: &NewCommand) -> Result<()> {
    let mut ids = transaction.open_table(COMMAND_IDS)?;
    let is_known = ids.get(new.id.as_str())?.is_some();
    if is_known {
        return Ok(());
    }
    let number = next(transaction, "commands")?;
    ids.insert(new.id.as_str(), number)?;
    transaction.open_table(OPEN_COMMANDS)?.insert((new.holder.as_str(), number), ())?;
    transaction.open_table(COMMANDS_OF_TASK)?.insert((new.task_id.as_str(), number), ())?;
    let record = encode(&CommandRecord::of(new))?;
    transaction.open_table(COMMANDS)?.insert(number, record.as_slice())?;
    Ok(())
}

// guide: claim
pub(super) fn claim(
    transaction: &WriteTransaction,
    holder: &IncarnationId,
    limit: usize,
    lease: Duration,
    now: Timestamp,
) -> Result<Vec<Command>> {
    let mut commands = transaction.open_table(COMMANDS)?;
    let open = transaction.open_table(OPEN_COMMANDS)?;
    let mut claimed = Vec::new();
    for key in open.range((holder.as_str(), 0)..=(holder.as_str(), u64::MAX))? {
        if claimed.len() == limit {
            break;
        }
        let number = key?.0.value().1;
        let mut record = record(&commands, number)?;
        if record.claimed_until.is_some_and(|until| Timestamp::from_micros(until) > now) {
            continue;
        }
        record.claimed_until = Some(now.after(lease).as_micros());
        commands.insert(number, encode(&record)?.as_slice())?;
        claimed.push(record.into_command()?);
    }
    Ok(claimed)
}
// guide: end

fn record(commands: &Table<'_, u64, &'static [u8]>, number: u64) -> Result<CommandRecord> {
    let row = commands.get(number)?;
    decode(row.ok_or_else(|| unreadable(format!("command {number} is gone")))?.value())
}

/// Changes a command that has no receipt yet; `false` where there is none such.
fn change(
    transaction: &WriteTransaction,
    id: &CommandId,
    change: impl FnOnce(&mut CommandRecord),
) -> Result<bool> {
    let ids = transaction.open_table(COMMAND_IDS)?;
    let Some(number) = ids.get(id.as_str())?.map(|number| number.value()) else {
        return Ok(false);
    };
    let mut commands = transaction.open_table(COMMANDS)?;
    let mut record = record(&commands, number)?;
    if record.receipt.is_some() {
        return Ok(false);
    }
    change(&mut record);
    if record.receipt.is_some() {
        transaction.open_table(OPEN_COMMANDS)?.remove((record.holder.as_str(), number))?;
    }
    commands.insert(number, encode(&record)?.as_slice())?;
    Ok(true)
}

pub(super) fn complete(
    transaction: &WriteTransaction,
    id: &CommandId,
    receipt: &Receipt,
    now: Timestamp,
) -> Result<bool> {
    change(transaction, id, |record| {
        record.receipt = Some((receipt.kind.to_string(), receipt.detail.to_string()));
        record.completed_at = Some(now.as_micros());
    })
}

pub(super) fn release(transaction: &WriteTransaction, id: &CommandId) -> Result<bool> {
    change(transaction, id, |record| record.claimed_until = None)
}

pub(super) fn of_task(transaction: &ReadTransaction, task: &TaskId) -> Result<Vec<Command>> {
    let commands = transaction.open_table(COMMANDS)?;
    let of_task = transaction.open_table(COMMANDS_OF_TASK)?;
    let mut found = Vec::new();
    for key in of_task.range((task.as_str(), 0)..=(task.as_str(), u64::MAX))? {
        if let Some(row) = commands.get(key?.0.value().1)? {
            found.push(decode::<CommandRecord>(row.value())?.into_command()?);
        }
    }
    Ok(found)
}

/// Removes all commands of a task that is pruned.
pub(super) fn forget(transaction: &WriteTransaction, task: &str) -> Result<()> {
    let mut of_task = transaction.open_table(COMMANDS_OF_TASK)?;
    let mut commands = transaction.open_table(COMMANDS)?;
    let mut ids = transaction.open_table(COMMAND_IDS)?;
    let mut open = transaction.open_table(OPEN_COMMANDS)?;
    let mut numbers = Vec::new();
    for key in of_task.range((task, 0)..=(task, u64::MAX))? {
        numbers.push(key?.0.value().1);
    }
    for number in numbers {
        let record = record(&commands, number)?;
        commands.remove(number)?;
        ids.remove(record.id.as_str())?;
        open.remove((record.holder.as_str(), number))?;
        of_task.remove((task, number))?;
    }
    Ok(())
}
