//! The text of the one statement that writes a batch: arrays for columns, and what was refused as its answer.
//!
//! A part for each kind of entry: creates, saves, touches; a statement has those that its batch needs. Being
//! one statement, it is one round trip and one transaction. It sees each task as it was before, so no two
//! entries of a batch may concern one task.

/// Columns of an array each, with the type of its elements.
pub(crate) type Columns = &'static [(&'static str, &'static str)];

/// What a create and a save write.
pub(crate) const STATE: Columns = &[
    ("id", "text"),
    ("status", "smallint"),
    ("status_version", "bigint"),
    ("owner", "text"),
    ("supervisor", "text"),
    ("updated_at", "timestamptz"),
    ("queued_at", "timestamptz"),
    ("started_at", "timestamptz"),
    ("attempt_started_at", "timestamptz"),
    ("ended_at", "timestamptz"),
    ("attempt", "bigint"),
    ("max_attempts", "bigint"),
    ("priority", "integer"),
    ("label", "text"),
    ("tags", "text"),
    ("value", "text"),
    ("failure_kind", "text"),
    ("failure_message", "text"),
    ("failure_retryable", "boolean"),
];

/// What only a create writes.
pub(crate) const FIXED: Columns = &[
    ("name", "text"),
    ("bucket", "bigint"),
    ("bucket_key", "text"),
    ("created_at", "timestamptz"),
];

pub(crate) const TRAIL: Columns = &[
    ("version", "bigint"),
    ("from_status", "smallint"),
    ("to_status", "smallint"),
    ("at", "timestamptz"),
    ("trigger", "smallint"),
    ("reason", "text"),
];

pub(crate) const TOUCH: Columns = &[
    ("id", "text"),
    ("heartbeat", "timestamptz"),
    ("has_progress", "boolean"),
    ("done", "double precision"),
    ("total", "double precision"),
    ("unit", "text"),
    ("message", "text"),
];

/// Does a statement look for rows that exist before it inserts?
///
/// That costs a third of the rate, and what is new is new almost always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trust {
    /// No: where one exists, the whole fails as [taken](crate::error::Fault::is_taken), and nothing is done.
    AllNew,
    /// Yes: what exists stays.
    Nothing,
}

impl Trust {
    const fn clause(self) -> &'static str {
        match self {
            Self::AllNew => "",
            Self::Nothing => " ON CONFLICT DO NOTHING",
        }
    }
}

/// Which parts a statement has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) trust: Trust,
    pub(crate) creates: bool,
    pub(crate) saves: bool,
    pub(crate) touches: bool,
}

impl Shape {
    /// The statement. Its answer has a column for each part: the places of what was refused, if any.
    pub(crate) fn sql(self) -> String {
        let mut sql = Sql { on_conflict: self.trust.clause(), ..Sql::default() };
        if self.creates {
            sql.creates();
        }
        if self.saves {
            sql.saves();
        }
        if self.touches {
            sql.touches();
        }
        format!("WITH {} SELECT {}", sql.parts.join(", "), sql.answers.join(", "))
    }
}

/// A statement as it grows.
#[derive(Default)]
struct Sql {
    on_conflict: &'static str,
    parameters: usize,
    parts: Vec<String>,
    answers: Vec<String>,
}

impl Sql {
    fn creates(&mut self) {
        let ids = self.parameters + 1;
        let mut columns = STATE.to_vec();
        columns.extend_from_slice(FIXED);
        let rows = self.arrays(&columns);
        let names = names(&columns, "");
        let values: Vec<String> = columns.iter().map(|(name, _)| typed(name)).collect();
        self.parts.push(format!(
            "made AS (INSERT INTO ~tasks ({names}) SELECT {} FROM {rows} AS v({names}){} \
             RETURNING id, seq), \
             numbered AS (SELECT m.seq, v.place FROM made m \
             JOIN unnest(${ids}::text[]) WITH ORDINALITY AS v(id, place) ON v.id = m.id)",
            values.join(", "),
            self.on_conflict
        ));
        self.trail("numbered", "made_trail");
        self.answer("made", "numbered", ids);
    }

    fn saves(&mut self) {
        let ids = self.parameters + 1;
        let mut columns = STATE.to_vec();
        columns.push(("expected", "bigint"));
        let rows = self.arrays(&columns);
        let names = names(&columns, "");
        let changes: Vec<String> = STATE
            .iter()
            .filter(|(name, _)| *name != "id")
            .map(|(name, _)| format!("{name} = {}", typed(name)))
            .collect();
        self.parts.push(format!(
            "saved AS (UPDATE ~tasks t SET {} FROM {rows} WITH ORDINALITY AS v({names}, place) \
             WHERE t.id = v.id AND t.status_version = v.expected AND v.status_version > v.expected \
             RETURNING t.seq, v.place)",
            changes.join(", ")
        ));
        self.trail("saved", "saved_trail");
        self.answer("saved", "saved", ids);
    }

    fn touches(&mut self) {
        let ids = self.parameters + 1;
        let rows = self.arrays(TOUCH);
        let progress: Vec<String> = ["done", "total", "unit", "message"]
            .iter()
            .map(|name| {
                format!("progress_{name} = CASE WHEN v.has_progress THEN v.{name} ELSE t.progress_{name} END")
            })
            .collect();
        self.parts.push(format!(
            "touched AS (UPDATE ~tasks t SET last_heartbeat_at = coalesce(v.heartbeat, t.last_heartbeat_at), \
             {} FROM {rows} WITH ORDINALITY AS v({}, place) WHERE t.id = v.id RETURNING v.place)",
            progress.join(", "),
            names(TOUCH, "")
        ));
        self.answer("touched", "touched", ids);
    }

    /// Audit rows of the tasks that `written` has with their places.
    fn trail(&mut self, written: &str, name: &str) {
        let mut columns = vec![("place", "bigint")];
        columns.extend_from_slice(TRAIL);
        let rows = self.arrays(&columns);
        self.parts.push(format!(
            "{name} AS (INSERT INTO ~transitions (task_seq, {}) SELECT w.seq, {} \
             FROM {rows} AS r({}) JOIN {written} w ON w.place = r.place{})",
            names(TRAIL, ""),
            names(TRAIL, "r."),
            names(&columns, ""),
            self.on_conflict
        ));
    }

    /// Nothing where all were written, which is the rule and costs no more than counting.
    fn answer(&mut self, counted: &str, placed: &str, ids: usize) {
        self.answers.push(format!(
            "CASE WHEN (SELECT count(*) FROM {counted}) < cardinality(${ids}::text[]) THEN \
             (SELECT array_agg(p) FROM generate_series(1::bigint, cardinality(${ids}::text[])) p \
              WHERE p NOT IN (SELECT place FROM {placed})) END"
        ));
    }

    /// `unnest` of as many further parameters.
    fn arrays(&mut self, columns: &[(&str, &str)]) -> String {
        let arrays: Vec<String> = columns
            .iter()
            .map(|(_, element)| {
                self.parameters += 1;
                format!("${}::{element}[]", self.parameters)
            })
            .collect();
        format!("unnest({})", arrays.join(", "))
    }
}

fn names(columns: &[(&str, &str)], prefix: &str) -> String {
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("{prefix}{name}")).collect();
    names.join(", ")
}

/// The value for a column: JSON comes as text, which keeps what is in it.
fn typed(name: &str) -> String {
    match name {
        "tags" => "v.tags::jsonb".to_owned(),
        "value" => "v.value::json".to_owned(),
        other => format!("v.{other}"),
    }
}
