//! The tables, and what their keys are good for.

use redb::{ReadableTable, TableDefinition};

use super::error::Result;

/// Tasks, in the order in which they were created: a page is a walk from its cursor downwards, and no change
/// of a task moves it.
pub(super) const TASKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("tasks");

/// The number of each task, by its id.
pub(super) const TASK_IDS: TableDefinition<'_, &str, u64> = TableDefinition::new("task_ids");

/// Numbers of unfinished tasks: what most questions are about, while most tasks have ended.
pub(super) const UNFINISHED: TableDefinition<'_, u64, ()> = TableDefinition::new("unfinished");

/// Progress and heartbeat. A save does not open this table, so it cannot wipe them out.
pub(super) const TOUCHED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("touched");

/// Audit rows, by task and version: inserting a pair that is there can be seen, and reading ascends.
pub(super) const TRAIL: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("trail");

/// Commands, in the order in which they were handed in.
pub(super) const COMMANDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("commands");

/// The number of each command, by its id.
pub(super) const COMMAND_IDS: TableDefinition<'_, &str, u64> = TableDefinition::new("command_ids");

/// All commands of a task.
pub(super) const COMMANDS_OF_TASK: TableDefinition<'_, (&str, u64), ()> =
    TableDefinition::new("commands_of_task");

/// Commands without a receipt, by holder: claiming never meets what is done.
pub(super) const OPEN_COMMANDS: TableDefinition<'_, (&str, u64), ()> =
    TableDefinition::new("open_commands");

/// Nodes with their leases, by incarnation. A task's lease is read from here and stands nowhere else.
pub(super) const NODES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("nodes");

/// Store-wide facts.
pub(super) const FACTS: TableDefinition<'_, &str, &str> = TableDefinition::new("facts");

/// The last number that was given, by table, and the version of all this.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Makes them all, so that reading never meets a table that is missing.
pub(super) fn make(transaction: &redb::WriteTransaction) -> Result<()> {
    transaction.open_table(TASKS)?;
    transaction.open_table(TASK_IDS)?;
    transaction.open_table(UNFINISHED)?;
    transaction.open_table(TOUCHED)?;
    transaction.open_table(TRAIL)?;
    transaction.open_table(COMMANDS)?;
    transaction.open_table(COMMAND_IDS)?;
    transaction.open_table(COMMANDS_OF_TASK)?;
    transaction.open_table(OPEN_COMMANDS)?;
    transaction.open_table(NODES)?;
    transaction.open_table(FACTS)?;
    transaction.open_table(NUMBERS)?;
    Ok(())
}

/// The next number for a row of this table.
pub(super) fn next(transaction: &redb::WriteTransaction, table: &str) -> Result<u64> {
    let mut numbers = transaction.open_table(NUMBERS)?;
    let next = numbers.get(table)?.map_or(0, |number| number.value()) + 1;
    numbers.insert(table, next)?;
    Ok(next)
}
