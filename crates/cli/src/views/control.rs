//! What became of a request to one task: the rows of `stop`, `pause`, `resume` and `cancel`.

use chongming_core::TaskId;
use serde::{Serialize, Serializer};

use crate::output::color::Tone;
use crate::output::table::{Cell, Column, Table};

/// What became of it, as far as was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// The task.
    #[serde(serialize_with = "as_text")]
    pub(crate) task_id: TaskId,
    /// Taken by the task's holder, or carried out on the spot.
    pub(crate) accepted: bool,
    /// Whether it came to what was asked; none when nobody waited for it.
    pub(crate) confirmed: Option<bool>,
    /// In words.
    pub(crate) result: String,
}

fn as_text<S: Serializer>(id: &TaskId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

impl Verdict {
    /// Did it come to what was asked, as far as it was waited for?
    pub(crate) fn is_well(&self) -> bool {
        self.accepted && self.confirmed != Some(false)
    }
}

/// The table.
pub(crate) fn table<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Table<4> {
    let mut table = Table::new([
        Column::key("TASK_ID"),
        Column::key("ACCEPTED"),
        Column::key("CONFIRMED"),
        Column::text("RESULT"),
    ]);
    for verdict in verdicts {
        table.row([
            verdict.task_id.as_str().into(),
            yes_or_no(verdict.accepted),
            verdict.confirmed.map_or_else(Cell::empty, yes_or_no),
            verdict.result.as_str().into(),
        ]);
    }
    table
}

fn yes_or_no(yes: bool) -> Cell {
    if yes { Cell::toned("yes", Tone::Good) } else { Cell::toned("no", Tone::Bad) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_waited_for_is_neither_confirmed_nor_not() {
        let verdict = |accepted, confirmed| Verdict {
            task_id: TaskId::new("t").unwrap(),
            accepted,
            confirmed,
            result: "sent to its holder".to_owned(),
        };
        assert_eq!(
            json!(verdict(true, None)),
            json!({
                "task_id": "t", "accepted": true, "confirmed": null, "result": "sent to its holder",
            })
        );
        assert_eq!(
            table(&[verdict(true, None), verdict(true, Some(false))]).lines(None, false),
            [
                "TASK_ID  ACCEPTED  CONFIRMED  RESULT",
                "t        yes       -          sent to its holder",
                "t        yes       no         sent to its holder",
            ]
        );
        for (accepted, confirmed, well) in [
            (true, None, true),
            (true, Some(true), true),
            (true, Some(false), false),
            (false, None, false),
        ] {
            assert_eq!(verdict(accepted, confirmed).is_well(), well);
        }
    }
}
