//! `pipeline`.

use crate::support::Sandbox;

#[test]
fn a_build_without_pipelines_says_so() {
    let sandbox = Sandbox::with_tasks();
    let outcome = sandbox.run(&["pipeline", "--tasks", "m.toml", "nightly"]).expect(1);
    assert!(
        outcome.err.contains("nightly") && outcome.err.contains("without pipelines"),
        "{outcome:?}"
    );
    assert!(!sandbox.path("tasks.db").exists());
}
