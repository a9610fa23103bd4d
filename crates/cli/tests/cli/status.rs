//! `status`.

use crate::support::Sandbox;

crate::on_each_store!(
    the_exit_code_tells_an_end_without_success,
    an_unknown_id_is_an_error_with_the_nearest_one,
    hostile_text_is_shown_harmless,
    what_runs_elsewhere_is_read_through,
);

fn the_exit_code_tells_an_end_without_success(sandbox: &Sandbox) {
    sandbox.run_task("good", &["ok"]);
    sandbox.run_task("bad", &["fail"]);
    let _nap = sandbox.start_task("nap", &["nap"], "running");
    for (id, code, status) in
        [("good", 0, "succeeded"), ("bad", 3, "failed"), ("nap", 0, "running")]
    {
        let outcome = sandbox.run(&["status", id]).expect(code);
        assert!(outcome.out.contains(&format!("{status} (version ")), "{outcome:?}");
        assert_eq!(sandbox.run(&["--json", "status", id]).expect(code).json()["status"], status);
    }
}

fn an_unknown_id_is_an_error_with_the_nearest_one(sandbox: &Sandbox) {
    sandbox.run_task("demo-1", &["ok", "--label", "nightly load"]);
    for (id, hint) in [
        ("demo-2", "did you mean `demo-1`?"),
        ("nightly", "label of `demo-1`"),
        ("nothing-like-it", "ps --all"),
    ] {
        for command in ["status", "history", "logs", "explain", "wait"] {
            let outcome = sandbox.run(&[command, id]).expect(1);
            assert!(
                outcome.err.contains(id) && outcome.err.contains(hint),
                "{command}: {outcome:?}"
            );
        }
    }
}

fn hostile_text_is_shown_harmless(sandbox: &Sandbox) {
    sandbox.run_task("t", &["ok", "--label", "evil\x1b[31m\x07\nnext", "--tag", "\u{202e}x"]);
    for args in [&["status", "t"][..], &["ps", "--all"], &["history", "t"]] {
        let out = sandbox.run(args).expect(0).out;
        assert!(!out.contains(['\x1b', '\x07', '\u{202e}']), "{out}");
    }
    assert_eq!(sandbox.status("t")["label"], "evil\u{1b}[31m\u{7}\nnext");
}

fn what_runs_elsewhere_is_read_through(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap", "--owner", "node-a"], "running");
    let steps = || -> Vec<String> {
        let rows = sandbox.run(&["--json", "history", "t"]).expect(0).json();
        rows.as_array().unwrap().iter().map(|row| row["to"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(steps(), ["queued", "starting", "running"]);
    let task = sandbox.status("t");
    assert_eq!((&task["owner"], &task["status_version"]), (&"node-a".into(), &3.into()));
    assert_eq!(sandbox.run(&["--json", "ps"]).expect(0).json(), serde_json::json!([task]));
    sandbox.run(&["pause", "t", "--wait", "60s"]).expect(0);
    assert_eq!(sandbox.status("t")["status_version"], 5);
    assert_eq!(steps(), ["queued", "starting", "running", "pausing", "paused"]);
    let node = sandbox.run(&["--json", "nodes"]).expect(0).json()[0].clone();
    assert_eq!(node["incarnation"], task["supervisor"]);
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    run.finish().expect(3);
    assert_eq!(steps()[5..], ["stopping", "stopped"]);
}
