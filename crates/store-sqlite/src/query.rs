//! Reading tasks: filters become SQL, and every condition is judged in the database.

use chongming_core::store::{Count, Cursor, TaskFilter, TaskPage, TaskQuery};
use chongming_core::{Status, StatusSet, TaskId, TaskSnapshot, Transition};
use rusqlite::types::Value as Parameter;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::codes;
use crate::row::{SEQ, TASK_COLUMNS, limit, resolve, snapshot, transition, unreadable, unsigned};

const FROM: &str = "tasks t LEFT JOIN nodes n ON n.incarnation = t.supervisor";

pub(crate) fn get(connection: &Connection, id: &TaskId) -> rusqlite::Result<Option<TaskSnapshot>> {
    let sql = format!("SELECT {TASK_COLUMNS} FROM {FROM} WHERE t.id = ?1");
    connection.prepare_cached(&sql)?.query_row([id.as_str()], snapshot).optional()
}

pub(crate) fn history(
    connection: &Connection,
    id: &TaskId,
    after: u64,
    at_most: usize,
) -> rusqlite::Result<Vec<Transition>> {
    let mut statement = connection.prepare_cached(
        "SELECT h.version, h.from_status, h.to_status, h.at, h.trigger, h.reason FROM transitions h \
         WHERE h.task_seq = (SELECT seq FROM tasks WHERE id = ?1) AND h.version > ?2 \
         ORDER BY h.version LIMIT ?3",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = statement
        .query_map(params![id.as_str(), after, limit(at_most)], |row| transition(row, id))?;
    rows.collect()
}

/// The sequence number in a cursor of ours.
pub(crate) fn place(cursor: &Cursor) -> Option<i64> {
    cursor.0.parse().ok().filter(|seq| *seq > 0)
}

/// One page of tasks created before `before`.
pub(crate) fn page(
    connection: &Connection,
    query: &TaskQuery,
    before: i64,
) -> rusqlite::Result<TaskPage> {
    let mut conditions = Conditions::of(&query.filter)?;
    let before = conditions.bind(before);
    // One more than asked for says whether there is another page.
    let at_most = conditions.bind(limit(query.limit.saturating_add(1)));
    let newest = format!("ORDER BY t.seq DESC LIMIT {at_most}");
    let sql = match query.filter.statuses {
        Some(statuses) if !statuses.contains(Status::Succeeded) => {
            // Each state's part of the index is in page order: take a page of each, then the newest of all.
            let part = |status| {
                format!(
                    "SELECT seq FROM (SELECT t.seq FROM {} WHERE {} AND t.seq < {before} {newest})",
                    conditions.from(),
                    conditions.with_state(status)
                )
            };
            let parts: Vec<String> = statuses.iter().map(part).collect();
            if parts.is_empty() {
                return Ok(TaskPage::default());
            }
            format!(
                "SELECT {TASK_COLUMNS} FROM ({}) p CROSS JOIN tasks t ON t.seq = p.seq \
                 LEFT JOIN nodes n ON n.incarnation = t.supervisor {newest}",
                parts.join(" UNION ALL ")
            )
        }
        statuses => format!(
            "SELECT {TASK_COLUMNS} FROM {FROM} WHERE {} AND t.seq < {before} {newest}",
            conditions.with_states(statuses)
        ),
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(conditions.parameters))?;
    let mut page = TaskPage::default();
    let mut last: i64 = 0;
    while let Some(row) = rows.next()? {
        if page.tasks.len() == query.limit {
            page.next = Some(Cursor(last.to_string().into()));
            break;
        }
        page.tasks.push(snapshot(row)?);
        last = row.get(SEQ)?;
    }
    Ok(page)
}

pub(crate) fn count(connection: &Connection, filter: &TaskFilter) -> rusqlite::Result<Vec<Count>> {
    let conditions = Conditions::of(filter)?;
    let mut sql = format!(
        "SELECT t.bucket, t.status, count(*) FROM {} WHERE {}",
        conditions.from(),
        conditions.with_states(filter.statuses)
    );
    if filter.statuses.is_some_and(|set| !set.contains(Status::Succeeded)) {
        sql.push_str(&format!(" AND t.status <> {}", codes::SUCCEEDED));
    }
    sql.push_str(" GROUP BY t.bucket, t.status");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(conditions.parameters), |row| {
        let code = row.get(1)?;
        let unknown = || unreadable(1, format!("{code} is no status of this version"));
        let status = codes::status_of(code).ok_or_else(unknown)?;
        Ok(Count { bucket: row.get(0)?, status, tasks: unsigned(row, 2)? })
    })?;
    rows.collect()
}

/// A filter's conditions, but for the states, with their parameters.
struct Conditions {
    sql: String,
    parameters: Vec<Parameter>,
    needs_lease: bool,
}

impl Conditions {
    fn of(filter: &TaskFilter) -> rusqlite::Result<Self> {
        let TaskFilter {
            statuses: _,
            buckets,
            tags,
            name,
            owner,
            supervisor,
            lease_expired,
            unchanged_since,
            text,
        } = filter;
        let mut all = Self {
            sql: "TRUE".to_owned(),
            parameters: Vec::new(),
            needs_lease: lease_expired.is_some(),
        };
        if let Some(set) = buckets {
            let numbers = all.bind(json(set.as_slice())?);
            all.and(&format!("t.bucket IN (SELECT value FROM json_each({numbers}))"));
        }
        for tag in tags {
            // The first half is quick and may be fooled by commas; the second is exact.
            let (quoted, exact) = (all.bind(json(&**tag)?), all.bind(tag.to_string()));
            all.and(&format!(
                "instr(t.tags, {quoted}) > 0 AND EXISTS (SELECT 1 FROM json_each(t.tags) WHERE value = {exact})"
            ));
        }
        for (column, wanted) in [
            ("t.name", name.as_deref()),
            ("t.owner", owner.as_deref()),
            ("t.supervisor", supervisor.as_ref().map(|id| id.as_str())),
        ] {
            if let Some(wanted) = wanted {
                let wanted = all.bind(wanted.to_owned());
                all.and(&format!("{column} = {wanted}"));
            }
        }
        if let Some((expired, now)) = lease_expired {
            let now = all.bind(resolve(*now).as_micros());
            all.and(&if *expired {
                format!("(n.lease_until IS NULL OR n.lease_until <= {now})")
            } else {
                format!("n.lease_until > {now}")
            });
        }
        if let Some(time) = unchanged_since {
            let time = all.bind(time.as_micros());
            all.and(&format!("t.updated_at < {time}"));
        }
        if let Some(text) = text {
            let text = all.bind(text.to_string());
            all.and(&format!("(instr(t.id, {text}) > 0 OR instr(t.label, {text}) > 0)"));
        }
        Ok(all)
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    /// Adds a parameter and returns how the statement names it.
    fn bind(&mut self, value: impl Into<Parameter>) -> String {
        self.parameters.push(value.into());
        format!("?{}", self.parameters.len())
    }

    /// Without the nodes where no condition asks for a lease, so that an index alone can answer.
    fn from(&self) -> &'static str {
        if self.needs_lease { FROM } else { "tasks t" }
    }

    /// The second condition tells SQLite that the index of states has the row.
    fn with_state(&self, status: Status) -> String {
        let (code, succeeded) = (codes::status(status), codes::SUCCEEDED);
        format!("t.status = {code} AND t.status <> {succeeded} AND {}", self.sql)
    }

    fn with_states(&self, statuses: Option<StatusSet>) -> String {
        match statuses {
            None => self.sql.clone(),
            Some(set) => {
                let codes: Vec<String> = set.iter().map(|s| codes::status(s).to_string()).collect();
                format!("t.status IN ({}) AND {}", codes.join(", "), self.sql)
            }
        }
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
