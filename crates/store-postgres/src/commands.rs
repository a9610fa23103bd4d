//! Command rows.

use std::time::Duration;

use chongming_core::store::{Command, CommandKind, NewCommand, Now, Receipt, ReceiptKind};
use chongming_core::{CommandId, IncarnationId, TaskId};
use postgres::Row;

use crate::connection::Link;
use crate::error::Result;
use crate::row::{
    Time, get, given, incarnation, limit, micros, optional_text, optional_time, task_id, text,
    time, unreadable,
};

const COLUMNS: &str = "c.id, c.task_id, c.holder, c.kind, c.reason, c.issuer, c.issued_at, c.claimed_until, \
    c.receipt, c.detail, c.completed_at, c.seq";

/// Rings in the same transaction: nobody hears of a command that is not there.
const SUBMIT: &str = "WITH new AS (INSERT INTO ~commands (id, task_id, holder, kind, reason, issuer, issued_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING holder) \
    SELECT pg_notify($8, holder) FROM new";

pub(crate) fn submit(link: &mut Link, command: &NewCommand, channel: &str) -> Result<()> {
    link.query(
        SUBMIT,
        &[
            &command.id.as_str(),
            &command.task_id.as_str(),
            &command.holder.as_str(),
            &command.kind.as_str(),
            &command.reason.as_deref(),
            &&*command.issuer,
            &Time(command.issued_at),
            &channel,
        ],
    )?;
    Ok(())
}

/// The open commands of a holder that nobody has claimed; those that somebody claims just now are left to
/// him.
pub(crate) const CLAIMABLE: &str = "SELECT seq FROM ~commands \
    WHERE holder = $1 AND receipt IS NULL \
    AND (claimed_until IS NULL OR claimed_until <= coalesce($2::timestamptz, clock_timestamp())) \
    ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED";

pub(crate) fn claim(
    link: &mut Link,
    holder: &IncarnationId,
    at_most: usize,
    lease: Duration,
    now: Now,
) -> Result<Vec<Command>> {
    let sql = format!(
        "WITH picked AS MATERIALIZED ({CLAIMABLE}) \
         UPDATE ~commands c SET claimed_until = \
             coalesce($2::timestamptz, clock_timestamp()) + $4::bigint * interval '1 microsecond' \
         FROM picked WHERE c.seq = picked.seq RETURNING {COLUMNS}"
    );
    let parameters = (holder.as_str(), given(now), limit(at_most), micros(lease));
    let rows = link.query(&sql, &[&parameters.0, &parameters.1, &parameters.2, &parameters.3])?;
    let claimed = rows.iter().map(|row| Ok((get::<i64>(row, 11)?, command(row)?)));
    let mut claimed = claimed.collect::<Result<Vec<_>>>()?;
    claimed.sort_by_key(|(seq, _)| *seq); // RETURNING promises no order
    Ok(claimed.into_iter().map(|(_, command)| command).collect())
}

pub(crate) fn complete(
    link: &mut Link,
    id: &CommandId,
    receipt: &Receipt,
    now: Now,
) -> Result<bool> {
    let sql = "UPDATE ~commands SET receipt = $2, detail = $3, \
               completed_at = coalesce($4::timestamptz, clock_timestamp()) \
               WHERE id = $1 AND receipt IS NULL RETURNING seq";
    let (kind, now) = (receipt.kind.as_str(), given(now));
    Ok(!link.query(sql, &[&id.as_str(), &kind, &&*receipt.detail, &now])?.is_empty())
}

pub(crate) fn release(link: &mut Link, id: &CommandId) -> Result<bool> {
    let sql =
        "UPDATE ~commands SET claimed_until = NULL WHERE id = $1 AND receipt IS NULL RETURNING seq";
    Ok(!link.query(sql, &[&id.as_str()])?.is_empty())
}

pub(crate) fn of_task(link: &mut Link, task: &TaskId) -> Result<Vec<Command>> {
    let sql = format!("SELECT {COLUMNS} FROM ~commands c WHERE c.task_id = $1 ORDER BY c.seq");
    link.query(&sql, &[&task.as_str()])?.iter().map(command).collect()
}

fn command(row: &Row) -> Result<Command> {
    let kind: CommandKind = get::<&str>(row, 3)?.parse().map_err(unreadable)?;
    let receipt = match get::<Option<&str>>(row, 8)? {
        None => None,
        Some(word) => {
            let kind: ReceiptKind = word.parse().map_err(unreadable)?;
            Some(Receipt { kind, detail: text(row, 9)? })
        }
    };
    let request = NewCommand {
        id: CommandId::new(get::<&str>(row, 0)?).map_err(unreadable)?,
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
