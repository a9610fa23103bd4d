//! Command rows.

use std::time::Duration;

use chongming_core::store::{Command, CommandKind, NewCommand, Now, Receipt, ReceiptKind};
use chongming_core::{CommandId, IncarnationId, TaskId};
use rusqlite::{Connection, Row, params};

use crate::row::{
    incarnation, limit, optional_text, optional_time, resolve, task_id, text, time, unreadable,
};

const COLUMNS: &str = "id, task_id, holder, kind, reason, issuer, issued_at, claimed_until, receipt, \
    detail, completed_at, seq";

const CLAIMABLE: &str =
    "holder = ?1 AND receipt IS NULL AND (claimed_until IS NULL OR claimed_until <= ?2)";

pub(crate) fn submit(connection: &Connection, command: &NewCommand) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO commands (id, task_id, holder, kind, reason, issuer, issued_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
    )?;
    statement.execute(params![
        command.id.as_str(),
        command.task_id.as_str(),
        command.holder.as_str(),
        command.kind.as_str(),
        command.reason.as_deref(),
        &*command.issuer,
        command.issued_at.as_micros(),
    ])?;
    Ok(())
}

/// Is there anything to claim? Asked before the write lock is taken: most polls find nothing.
pub(crate) fn is_any_claimable(
    connection: &Connection,
    holder: &IncarnationId,
    now: Now,
) -> rusqlite::Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM commands WHERE {CLAIMABLE})");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row(params![holder.as_str(), resolve(now).as_micros()], |row| row.get(0))
}

pub(crate) fn claim(
    connection: &Connection,
    holder: &IncarnationId,
    at_most: usize,
    lease: Duration,
    now: Now,
) -> rusqlite::Result<Vec<Command>> {
    let mut statement = connection.prepare_cached(&format!(
        "UPDATE commands SET claimed_until = ?3 WHERE seq IN \
         (SELECT seq FROM commands WHERE {CLAIMABLE} ORDER BY seq LIMIT ?4) RETURNING {COLUMNS}"
    ))?;
    let now = resolve(now);
    let until = now.after(lease).as_micros();
    let rows = statement
        .query_map(params![holder.as_str(), now.as_micros(), until, limit(at_most)], |row| {
            Ok((row.get::<_, i64>(11)?, command(row)?))
        })?;
    let mut claimed = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    claimed.sort_by_key(|(seq, _)| *seq); // RETURNING promises no order
    Ok(claimed.into_iter().map(|(_, command)| command).collect())
}

pub(crate) fn complete(
    connection: &Connection,
    id: &CommandId,
    receipt: &Receipt,
    now: Now,
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "UPDATE commands SET receipt = ?2, detail = ?3, completed_at = ?4 WHERE id = ?1 AND receipt IS NULL",
    )?;
    let (kind, now) = (receipt.kind.as_str(), resolve(now).as_micros());
    Ok(statement.execute(params![id.as_str(), kind, &*receipt.detail, now])? > 0)
}

pub(crate) fn release(connection: &Connection, id: &CommandId) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "UPDATE commands SET claimed_until = NULL WHERE id = ?1 AND receipt IS NULL",
    )?;
    Ok(statement.execute([id.as_str()])? > 0)
}

pub(crate) fn of_task(connection: &Connection, task: &TaskId) -> rusqlite::Result<Vec<Command>> {
    let sql = format!("SELECT {COLUMNS} FROM commands WHERE task_id = ?1 ORDER BY seq");
    connection.prepare_cached(&sql)?.query_map([task.as_str()], command)?.collect()
}

fn command(row: &Row<'_>) -> rusqlite::Result<Command> {
    let kind: CommandKind = row.get_ref(3)?.as_str()?.parse().map_err(|e| unreadable(3, e))?;
    let receipt = match row.get_ref(8)?.as_str_or_null()? {
        None => None,
        Some(word) => {
            let kind: ReceiptKind = word.parse().map_err(|e| unreadable(8, e))?;
            Some(Receipt { kind, detail: text(row, 9)? })
        }
    };
    let request = NewCommand {
        id: CommandId::new(row.get_ref(0)?.as_str()?).map_err(|e| unreadable(0, e))?,
        task_id: task_id(row, 1)?,
        holder: incarnation(row, 2)?,
        kind,
        reason: optional_text(row, 4)?,
        issuer: text(row, 5)?,
        issued_at: time(row, 6)?,
    };
    let (claimed_until, completed_at) = (optional_time(row, 7)?, optional_time(row, 10)?);
    Ok(Command { request, claimed_until, receipt, completed_at })
}
