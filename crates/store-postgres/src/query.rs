//! Reading tasks: filters become SQL, and every condition is judged by the server.

use chongming_core::store::{Count, Cursor, TaskFilter, TaskPage, TaskQuery};
use chongming_core::{Status, StatusSet, TaskId, TaskSnapshot, Transition};
use postgres::types::ToSql;

use crate::codes;
use crate::connection::Link;
use crate::error::Result;
use crate::row::{
    Reader, SEQ, TASK_COLUMNS, TASK_WIDTH, Time, code, get, given, json, limit, optional_time,
    optional_unsigned, transition, unsigned,
};

/// For the leases of tasks, and for conditions on them.
const HOLDERS: &str = "LEFT JOIN ~nodes n ON n.incarnation = t.supervisor";

/// How many unfinished states there are: their codes lie below those of the ended ones.
const UNFINISHED: usize = codes::FIRST_ENDED as usize;

pub(crate) fn get_task(link: &mut Link, id: &TaskId) -> Result<Option<TaskSnapshot>> {
    let sql =
        format!("SELECT {TASK_COLUMNS}, n.lease_until FROM ~tasks t {HOLDERS} WHERE t.id = $1");
    let Some(row) = link.query_opt(&sql, &[&id.as_str()])? else { return Ok(None) };
    let mut task = Reader::default().task(&row)?;
    task.lease_until = optional_time(&row, TASK_WIDTH)?;
    Ok(Some(task))
}

pub(crate) fn history(
    link: &mut Link,
    id: &TaskId,
    after: u64,
    at_most: usize,
) -> Result<Vec<Transition>> {
    let sql = "SELECT h.version, h.from_status, h.to_status, h.at, h.trigger, h.reason \
               FROM ~transitions h WHERE h.task_seq = (SELECT seq FROM ~tasks WHERE id = $1) \
               AND h.version > $2 ORDER BY h.version LIMIT $3";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = link.query(sql, &[&id.as_str(), &after, &limit(at_most)])?;
    rows.iter().map(|row| transition(row, id)).collect()
}

/// The sequence number in a cursor of ours.
pub(crate) fn place(cursor: &Cursor) -> Option<i64> {
    cursor.0.parse().ok().filter(|seq| *seq > 0)
}

/// One page of tasks created before `before`.
pub(crate) fn page(link: &mut Link, query: &TaskQuery, before: i64) -> Result<TaskPage> {
    if query.filter.statuses == Some(StatusSet::EMPTY) {
        return Ok(TaskPage::default());
    }
    // One more than asked for says whether there is another page.
    let statement = page_statement(&query.filter, before, query.limit.saturating_add(1))?;
    let rows = link.query(&statement.sql, &statement.parameters())?;
    let mut page = TaskPage::default();
    let (mut reader, mut last) = (Reader::default(), 0);
    for row in &rows {
        if page.tasks.len() == query.limit {
            page.next = Some(Cursor(last.to_string().into()));
            break;
        }
        let mut task = reader.task(row)?;
        task.lease_until = optional_time(row, TASK_WIDTH)?;
        page.tasks.push(task);
        last = get::<i64>(row, SEQ)?;
    }
    Ok(page)
}

/// Each source of tasks gives its newest, in the order of an index; then the newest of all are taken.
pub(crate) fn page_statement(
    filter: &TaskFilter,
    before: i64,
    at_most: usize,
) -> Result<Statement> {
    let mut statement = Statement::of(filter)?;
    let (before, at_most) = (statement.bind(before), statement.bind(limit(at_most)));
    let conditions = statement.sql.clone();
    let holders = statement.holders;
    let from = |condition: &str| {
        format!(
            "(SELECT t.* FROM ~tasks t {holders} WHERE {condition} AND {conditions} \
             AND t.seq < {before} ORDER BY t.seq DESC LIMIT {at_most})"
        )
    };
    let sources = match filter.statuses {
        Some(statuses) if !statuses.contains(Status::Succeeded) => {
            let (ended, unfinished): (Vec<Status>, Vec<Status>) =
                statuses.iter().partition(|status| status.is_terminal());
            let mut sources = Vec::new();
            // Each names the condition of its partial index.
            if !unfinished.is_empty() {
                // All of them need no condition of their own, which would mislead the server's estimate.
                let chosen = match unfinished.len() {
                    UNFINISHED => String::new(),
                    _ => statement.in_states(unfinished),
                };
                sources.push(from(&format!("t.status < {}{chosen}", codes::FIRST_ENDED)));
            }
            for status in ended {
                let (status, succeeded) = (codes::status(status), codes::SUCCEEDED);
                sources.push(from(&format!("t.status > {succeeded} AND t.status = {status}")));
            }
            sources
        }
        Some(statuses) => {
            let chosen = statement.in_states(statuses.iter());
            vec![from(&format!("TRUE{chosen}"))]
        }
        None => vec![from("TRUE")],
    };
    statement.sql = format!(
        "SELECT {TASK_COLUMNS}, n.lease_until FROM ({}) t {HOLDERS} \
         ORDER BY t.seq DESC LIMIT {at_most}",
        sources.join(" UNION ALL ")
    );
    Ok(statement)
}

pub(crate) fn count(link: &mut Link, filter: &TaskFilter) -> Result<Vec<Count>> {
    let mut statement = Statement::of(filter)?;
    let chosen =
        filter.statuses.map(|statuses| statement.in_states(statuses.iter())).unwrap_or_default();
    statement.sql = format!(
        "SELECT t.bucket, t.status, count(*) FROM ~tasks t {} WHERE {}{chosen} \
         GROUP BY t.bucket, t.status",
        statement.holders, statement.sql
    );
    let rows = link.query(&statement.sql, &statement.parameters())?;
    let rows = rows.iter().map(|row| {
        Ok(Count {
            bucket: optional_unsigned(row, 0)?,
            status: code(row, 1, codes::status_of, "status")?,
            tasks: unsigned(row, 2)?,
        })
    });
    rows.collect()
}

/// A statement as it grows, with its parameters; first a filter's conditions, but for the states.
pub(crate) struct Statement {
    pub(crate) sql: String,
    values: Vec<Box<dyn ToSql + Sync>>,
    /// Joined only where a condition asks for the lease.
    holders: &'static str,
}

impl Statement {
    fn of(filter: &TaskFilter) -> Result<Self> {
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
        let mut all = Self { sql: "TRUE".to_owned(), values: Vec::new(), holders: "" };
        if let Some(set) = buckets {
            let numbers: Vec<i64> = set.as_slice().iter().map(|n| i64::from(*n)).collect();
            let numbers = all.bind(numbers);
            all.and(&format!("t.bucket = ANY({numbers})"));
        }
        if !tags.is_empty() {
            let tags: Vec<&str> = tags.iter().map(|tag| &**tag).collect();
            let tags = all.bind(json(&tags)?);
            all.and(&format!("t.tags @> {tags}::text::jsonb"));
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
            all.holders = HOLDERS;
            let now = all.bind(given(*now));
            let now = format!("coalesce({now}::timestamptz, statement_timestamp())");
            all.and(&if *expired {
                format!("(n.lease_until IS NULL OR n.lease_until <= {now})")
            } else {
                format!("n.lease_until > {now}")
            });
        }
        if let Some(time) = unchanged_since {
            let time = all.bind(Time(*time));
            all.and(&format!("t.updated_at < {time}"));
        }
        if let Some(text) = text {
            let text = all.bind(text.to_string());
            all.and(&format!("(strpos(t.id, {text}) > 0 OR strpos(t.label, {text}) > 0)"));
        }
        Ok(all)
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    /// Adds a parameter and returns how the statement names it.
    fn bind(&mut self, value: impl ToSql + Sync + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    /// A further condition, for the states.
    fn in_states(&mut self, statuses: impl IntoIterator<Item = Status>) -> String {
        let codes: Vec<i16> = statuses.into_iter().map(codes::status).collect();
        let codes = self.bind(codes);
        format!(" AND t.status = ANY({codes})")
    }

    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value).collect()
    }
}
