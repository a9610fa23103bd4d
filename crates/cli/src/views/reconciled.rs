//! What was found about a task whose holder is gone: the rows of `reconcile`.

use chongming_core::Reconciled;
use serde::Serialize;

use crate::output::table::{Cell, Column, Table};

/// A finding as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ReconciledJson<'a> {
    outcome: &'static str,
    task_id: &'a str,
    was: &'static str,
    detail: &'a str,
}

impl<'a> From<&'a Reconciled> for ReconciledJson<'a> {
    fn from(found: &'a Reconciled) -> Self {
        Self {
            outcome: found.outcome.as_str(),
            task_id: found.task_id.as_str(),
            was: found.was.as_str(),
            detail: &found.detail,
        }
    }
}

/// The table of `reconcile`.
pub(crate) fn table<'a>(found: impl IntoIterator<Item = &'a Reconciled>) -> Table<4> {
    let mut table = Table::new([
        Column::key("OUTCOME"),
        Column::key("TASK_ID"),
        Column::key("WAS"),
        Column::text("DETAIL"),
    ]);
    for found in found {
        table.row([
            found.outcome.as_str().into(),
            found.task_id.as_str().into(),
            Cell::status(found.was),
            found.detail.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{ReconcileOutcome, Status, TaskId};
    use serde_json::json;

    #[test]
    fn what_was_done_to_which_task() {
        let found = Reconciled {
            outcome: ReconcileOutcome::MarkedLost,
            task_id: TaskId::new("t").unwrap(),
            was: Status::Running,
            detail: "its holder is gone".to_owned(),
        };
        assert_eq!(
            json!(ReconciledJson::from(&found)),
            json!({
                "outcome": "marked-lost", "task_id": "t", "was": "running",
                "detail": "its holder is gone",
            })
        );
        assert_eq!(
            table(&[found]).lines(None, false),
            [
                "OUTCOME      TASK_ID  WAS      DETAIL",
                "marked-lost  t        running  its holder is gone"
            ]
        );
    }
}
