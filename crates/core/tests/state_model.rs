//! `docs/state-model.md` says what the code does. `UPDATE_DOCS=1` rewrites the generated parts.
#![expect(clippy::unwrap_used, reason = "helpers outside of test functions")]

use std::fmt::Write as _;
use std::path::Path;

use chongming_core::{Group, RULES, Status, Trigger, triggers_between};

/// One line for each pair of states that has a trigger.
fn table() -> String {
    let mut text = String::from("| from | to | triggers |\n|---|---|---|\n");
    for rule in RULES {
        let from: Vec<_> = rule.from.iter().map(|status| format!("`{status}`")).collect();
        let triggers: Vec<_> = rule.triggers.iter().map(|t| format!("`{t}`")).collect();
        let (from, triggers) = (from.join(" "), triggers.join(" "));
        writeln!(text, "| {from} | `{}` | {triggers} |", rule.to).unwrap();
    }
    text
}

/// The same as a grid: rows are states before, columns states after, each cell the number of triggers.
fn grid() -> String {
    let mut text = String::from("| from \\ to |");
    for to in Status::ALL {
        write!(text, " {to} |").unwrap();
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(Status::ALL.len()));
    text.push('\n');
    for from in Status::ALL {
        write!(text, "| **{from}** |").unwrap();
        for to in Status::ALL {
            match triggers_between(from, to).count() {
                0 => text.push_str(" |"),
                count => write!(text, " {count} |").unwrap(),
            }
        }
        text.push('\n');
    }
    text
}

fn diagram() -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> pending\n");
    for from in Status::ALL {
        for to in Status::ALL {
            if triggers_between(from, to).next().is_some() {
                writeln!(text, "    {from} --> {to}").unwrap();
            }
        }
    }
    for status in Status::ALL.into_iter().filter(|status| status.group() == Group::Terminal) {
        writeln!(text, "    {status} --> [*]").unwrap();
    }
    text.push_str("```\n");
    text
}

fn triggers() -> String {
    let mut text = String::from("| trigger | actor |\n|---|---|\n");
    for trigger in Trigger::ALL {
        writeln!(text, "| `{trigger}` | {} |", trigger.actor()).unwrap();
    }
    text
}

#[test]
fn the_page_is_in_step_with_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-model.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut expected = page.clone();
    for (name, text) in
        [("table", table()), ("grid", grid()), ("diagram", diagram()), ("triggers", triggers())]
    {
        let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
        let start = expected.find(&begin).unwrap() + begin.len();
        let stop = expected.find(&end).unwrap();
        expected.replace_range(start..stop, &text);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(page == expected, "run this test with UPDATE_DOCS=1 and look at the difference");
    }
}
