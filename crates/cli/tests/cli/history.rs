//! `history`.

use crate::support::Sandbox;

crate::on_each_store!(every_change_has_its_row,);

fn every_change_has_its_row(sandbox: &Sandbox) {
    sandbox.run_task("t", &["ok"]);
    let outcome = sandbox.run(&["history", "t"]).expect(0);
    let rows: Vec<Vec<&str>> =
        outcome.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["VER", "FROM", "TO", "AT", "TRIGGER", "ACTOR", "REASON"]);
    let steps: Vec<[&str; 4]> =
        rows[1..].iter().map(|row| [row[0], row[1], row[2], row[4]]).collect();
    assert_eq!(
        steps,
        [
            ["1", "pending", "queued", "orchestrator:dependencies_resolved"],
            ["2", "queued", "starting", "scheduler:dispatch"],
            ["3", "starting", "running", "executor:launched"],
            ["4", "running", "succeeded", "executor:completed"],
        ]
    );
    let json = sandbox.run(&["--json", "history", "t"]).expect(0).json();
    assert_eq!(json.as_array().unwrap().len(), 4);
    assert_eq!((&json[3]["version"], &json[3]["actor"]), (&4.into(), &"system".into()));
}
