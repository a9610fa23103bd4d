//! Reading tasks: filters become SQL, and every condition is judged in the database.

use chongming_core::store::{Count, Cursor, TaskFilter, TaskPage, TaskQuery};
use chongming_core::{
    IncarnationId, Status, StatusSet, TaskId, TaskSnapshot, Timestamp, Transition,
};
use rusqlite::types::Value as Parameter;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::codes;
use crate::row::{
    Reader, SEQ, TASK_COLUMNS, TASK_WIDTH, limit, optional_time, resolve, time, transition,
    unreadable, unsigned,
};

/// For conditions on the lease only: leases themselves are looked up once for each holder.
const WITH_LEASE: &str = "tasks t LEFT JOIN nodes n ON n.incarnation = t.supervisor";

const HISTORY: &str = "SELECT h.version, h.from_status, h.to_status, h.at, h.trigger, h.reason \
    FROM transitions h WHERE h.task_seq = (SELECT seq FROM tasks WHERE id = ?1) AND h.version > ?2 \
    ORDER BY h.version LIMIT ?3";

fn one_task() -> String {
    format!("SELECT {TASK_COLUMNS}, n.lease_until FROM {WITH_LEASE} WHERE t.id = ?1")
}

pub(crate) fn get(connection: &Connection, id: &TaskId) -> rusqlite::Result<Option<TaskSnapshot>> {
    let task = |row: &Row<'_>| {
        let mut task = Reader::default().task(row)?;
        task.lease_until = optional_time(row, TASK_WIDTH)?;
        Ok(task)
    };
    connection.prepare_cached(&one_task())?.query_row([id.as_str()], task).optional()
}

pub(crate) fn history(
    connection: &Connection,
    id: &TaskId,
    after: u64,
    at_most: usize,
) -> rusqlite::Result<Vec<Transition>> {
    let mut statement = connection.prepare_cached(HISTORY)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = statement
        .query_map(params![id.as_str(), after, limit(at_most)], |row| transition(row, id))?;
    rows.collect()
}

/// The sequence number in a cursor of ours.
pub(crate) fn place(cursor: &Cursor) -> Option<i64> {
    cursor.0.parse().ok().filter(|seq| *seq > 0)
}

/// One page of tasks created before `before`; to be called in a transaction, since it asks several times.
pub(crate) fn page(
    connection: &Connection,
    query: &TaskQuery,
    before: i64,
) -> rusqlite::Result<TaskPage> {
    // One more than asked for says whether there is another page.
    let at_most = query.limit.saturating_add(1);
    let mut page =
        Page { limit: query.limit, last: 0, reader: Reader::default(), page: TaskPage::default() };
    match query.filter.statuses {
        Some(statuses) if !statuses.contains(Status::Succeeded) => {
            let mut row = connection
                .prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM tasks t WHERE t.seq = ?1"))?;
            for seq in in_states(connection, &query.filter, statuses, before, at_most)? {
                row.query_row([seq], |row| page.add(row))?;
            }
        }
        statuses => {
            let mut conditions = Conditions::of(&query.filter)?;
            let before = conditions.bind(before);
            let at_most = conditions.bind(limit(at_most));
            let sql = newest(&conditions, statuses, &before, &at_most);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(conditions.parameters))?;
            while let Some(row) = rows.next()? {
                page.add(row)?;
            }
        }
    }
    page.finish(connection)
}

/// Where a tag is asked for, its part of the index of tags, which is in the same order, leads to the tasks.
fn newest(
    conditions: &Conditions,
    statuses: Option<StatusSet>,
    before: &str,
    at_most: &str,
) -> String {
    let (tags, and_tag, seq) = match &conditions.tag {
        None => ("", String::new(), "t.seq"),
        Some(tag) => (
            "task_tags g CROSS JOIN ",
            format!("g.tag = {tag} AND t.seq = g.task_seq AND "),
            "g.task_seq",
        ),
    };
    format!(
        "SELECT {TASK_COLUMNS} FROM {tags}{} WHERE {and_tag}{} AND {seq} < {before} \
         ORDER BY {seq} DESC LIMIT {at_most}",
        conditions.from(),
        conditions.with_states(statuses)
    )
}

/// The newest tasks in these states, newest first. Each state's part of the index is in that order: take a
/// page of each, then the newest of all.
fn in_states(
    connection: &Connection,
    filter: &TaskFilter,
    statuses: StatusSet,
    before: i64,
    at_most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let mut conditions = Conditions::of(filter)?;
    let (before, limit) = (conditions.bind(before), conditions.bind(limit(at_most)));
    let place = conditions.parameters.len();
    let status = conditions.bind(0);
    let sql = newest_in_state(&conditions, &status, &before, &limit);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut newest: Vec<i64> = Vec::new();
    for status in statuses.iter() {
        if let Some(parameter) = conditions.parameters.get_mut(place) {
            *parameter = codes::status(status).into();
        }
        let rows =
            statement.query_map(params_from_iter(&conditions.parameters), |row| row.get(0))?;
        for seq in rows {
            newest.push(seq?);
        }
    }
    newest.sort_unstable_by(|a, b| b.cmp(a));
    newest.truncate(at_most);
    Ok(newest)
}

fn newest_in_state(conditions: &Conditions, status: &str, before: &str, limit: &str) -> String {
    // The second condition tells SQLite that the index of states has the row.
    format!(
        "SELECT t.seq FROM {} WHERE t.status = {status} AND t.status <> {} AND {} AND t.seq < {before} \
         ORDER BY t.seq DESC LIMIT {limit}",
        conditions.from(),
        codes::SUCCEEDED,
        conditions.sql
    )
}

/// A page as it fills.
struct Page {
    limit: usize,
    last: i64,
    reader: Reader,
    page: TaskPage,
}

impl Page {
    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        if self.page.tasks.len() == self.limit {
            self.page.next = Some(Cursor(self.last.to_string().into()));
        } else {
            self.page.tasks.push(self.reader.task(row)?);
            self.last = row.get(SEQ)?;
        }
        Ok(())
    }

    /// With the leases of the tasks' holders, which are few.
    fn finish(mut self, connection: &Connection) -> rusqlite::Result<TaskPage> {
        let mut statement =
            connection.prepare_cached("SELECT lease_until FROM nodes WHERE incarnation = ?1")?;
        let mut known: Vec<(IncarnationId, Option<Timestamp>)> = Vec::new();
        for task in &mut self.page.tasks {
            let Some(holder) = &task.supervisor else { continue };
            task.lease_until = match known.iter().rev().find(|(id, _)| id == holder) {
                Some((_, lease)) => *lease,
                None => {
                    let lease =
                        statement.query_row([holder.as_str()], |row| time(row, 0)).optional()?;
                    known.push((holder.clone(), lease));
                    lease
                }
            };
        }
        Ok(self.page)
    }
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
    /// One of the tags that are asked for.
    tag: Option<String>,
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
            tag: None,
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
            all.tag.get_or_insert(exact);
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
        if self.needs_lease { WITH_LEASE } else { "tasks t" }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Place, connect};
    use crate::error::Subject;
    use chongming_core::BucketSet;
    use chongming_core::store::Now;
    use rusqlite::StatementStatus;
    use std::time::Duration;

    fn database() -> Connection {
        let mut connection = connect(&Place::Memory).unwrap();
        let subject = Subject { name: "x".into(), lock_wait: Duration::ZERO };
        crate::schema::ensure(&mut connection, &subject).unwrap();
        connection
    }

    fn plan(sql: &str) -> String {
        let connection = database();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![Parameter::Null; statement.parameter_count()];
        let rows = statement.query_map(params_from_iter(parameters), |row| row.get(3)).unwrap();
        rows.collect::<rusqlite::Result<Vec<String>>>().unwrap().join("\n")
    }

    #[test]
    fn a_statement_is_parsed_once_however_often_its_parameters_change() {
        let connection = database();
        let query = TaskQuery {
            filter: TaskFilter { statuses: Some(StatusSet::unfinished()), ..TaskFilter::default() },
            after: None,
            limit: 10,
        };
        for number in 1..4 {
            let id = TaskId::new(format!("task-{number}")).unwrap();
            get(&connection, &id).unwrap();
            history(&connection, &id, number, 10).unwrap();
            page(&connection, &query, i64::MAX).unwrap();
        }
        let conditions = Conditions::of(&query.filter).unwrap();
        let states = newest_in_state(&conditions, "?3", "?1", "?2");
        for sql in [one_task(), HISTORY.to_owned(), states] {
            let statement = connection.prepare_cached(&sql).unwrap();
            assert!(statement.get_status(StatementStatus::Run) >= 3, "{sql}");
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }

    #[test]
    fn states_and_their_buckets_are_found_in_the_index_alone() {
        let buckets = Some(BucketSet::from_iter([1, 2]));
        for filter in [TaskFilter::default(), TaskFilter { buckets, ..TaskFilter::default() }] {
            let conditions = Conditions::of(&filter).unwrap();
            let plan = plan(&newest_in_state(&conditions, "?8", "?9", "?10"));
            let index = "SEARCH t USING COVERING INDEX tasks_by_status (status=? AND seq<?)";
            assert!(plan.contains(index) && !plan.contains("ORDER BY"), "{plan}");
        }
    }

    #[test]
    fn a_page_of_all_tasks_walks_backwards_without_sorting() {
        let conditions = Conditions::of(&TaskFilter::default()).unwrap();
        let plan = plan(&newest(&conditions, None, "?1", "?2"));
        assert_eq!(plan, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)");
    }

    #[test]
    fn a_page_of_a_tag_walks_its_part_of_the_index_without_sorting() {
        let tags = vec!["a".into(), "b".into()];
        let expired = Some((false, Now::At(Timestamp::from_micros(1))));
        for lease_expired in [None, expired] {
            let filter = TaskFilter { tags: tags.clone(), lease_expired, ..TaskFilter::default() };
            let conditions = Conditions::of(&filter).unwrap();
            let plan = plan(&newest(&conditions, Some(StatusSet::of(|_| true)), "?8", "?9"));
            let walk = "SEARCH g USING PRIMARY KEY (tag=? AND task_seq<?)\nSEARCH t USING INTEGER PRIMARY KEY (rowid=?)";
            assert!(plan.starts_with(walk) && !plan.contains("ORDER BY"), "{plan}");
        }
    }
}
