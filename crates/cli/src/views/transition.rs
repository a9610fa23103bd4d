//! One change of a task's status: the rows of `history`.

use chongming_core::Transition;
use serde::Serialize;

use crate::output::table::{Cell, Column, Table};

/// A transition as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TransitionJson<'a> {
    version: u64,
    from: &'static str,
    to: &'static str,
    at: String,
    trigger: &'static str,
    actor: &'static str,
    reason: Option<&'a str>,
}

impl<'a> From<&'a Transition> for TransitionJson<'a> {
    fn from(transition: &'a Transition) -> Self {
        Self {
            version: transition.version,
            from: transition.from.as_str(),
            to: transition.to.as_str(),
            at: transition.at.to_string(),
            trigger: transition.trigger.as_str(),
            actor: transition.actor().as_str(),
            reason: transition.reason.as_deref(),
        }
    }
}

/// The table of `history`.
pub(crate) fn table<'a>(transitions: impl IntoIterator<Item = &'a Transition>) -> Table<7> {
    let mut table = Table::new([
        Column::key("VER"),
        Column::key("FROM"),
        Column::key("TO"),
        Column::key("AT"),
        Column::key("TRIGGER"),
        Column::key("ACTOR"),
        Column::text("REASON"),
    ]);
    for transition in transitions {
        table.row([
            transition.version.to_string().into(),
            Cell::status(transition.from),
            Cell::status(transition.to),
            transition.at.to_string().into(),
            transition.trigger.as_str().into(),
            transition.actor().as_str().into(),
            transition.reason.as_deref().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples::at;
    use chongming_core::{Status, TaskId, Trigger};
    use serde_json::json;

    fn stop(reason: Option<&str>) -> Transition {
        Transition {
            task_id: TaskId::new("t").unwrap(),
            version: 7,
            from: Status::Running,
            to: Status::Stopping,
            at: at(0),
            trigger: Trigger::UserStop,
            reason: reason.map(Into::into),
        }
    }

    #[test]
    fn who_did_it_and_why() {
        assert_eq!(
            json!(TransitionJson::from(&stop(Some("发布窗口")))),
            json!({
                "version": 7, "from": "running", "to": "stopping",
                "at": "2026-09-21T14:13:20.000000Z",
                "trigger": "user:stop", "actor": "user", "reason": "发布窗口",
            })
        );
        assert_eq!(
            table(&[stop(Some("a\nb")), stop(None)]).lines(None, false),
            [
                "VER  FROM     TO        AT                           TRIGGER    ACTOR  REASON",
                "7    running  stopping  2026-09-21T14:13:20.000000Z  user:stop  user   a\\nb",
                "7    running  stopping  2026-09-21T14:13:20.000000Z  user:stop  user   -",
            ]
        );
    }
}
