//! `status`.

use crate::support::Sandbox;

#[test]
fn the_exit_code_tells_an_end_without_success() {
    let sandbox = Sandbox::with_tasks();
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

#[test]
fn an_unknown_id_is_an_error_with_the_nearest_one() {
    let sandbox = Sandbox::with_tasks();
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

#[test]
fn hostile_text_is_shown_harmless() {
    let sandbox = Sandbox::with_tasks();
    sandbox.run_task("t", &["ok", "--label", "evil\x1b[31m\x07\nnext", "--tag", "\u{202e}x"]);
    for args in [&["status", "t"][..], &["ps", "--all"], &["history", "t"]] {
        let out = sandbox.run(args).expect(0).out;
        assert!(!out.contains(['\x1b', '\x07', '\u{202e}']), "{out}");
    }
    assert_eq!(sandbox.status("t")["label"], "evil\u{1b}[31m\u{7}\nnext");
}
