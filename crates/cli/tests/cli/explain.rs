//! `explain`.

use crate::support::{Sandbox, wait_for};

crate::on_each_store!(the_holder_answers, without_one_it_is_only_what_the_store_knows,);

fn the_holder_answers(sandbox: &Sandbox) {
    let _run = sandbox.start_task("t", &["later"], "retry_wait");
    let answer = sandbox.run(&["--json", "explain", "t"]).expect(0).json();
    assert_eq!((&answer["source"], &answer["status"]), (&"holder".into(), &"retry_wait".into()));
    assert!(answer["explanation"].as_str().unwrap().contains("next attempt"), "{answer}");
}

fn without_one_it_is_only_what_the_store_knows(sandbox: &Sandbox) {
    sandbox.start_task("t", &["nap", "--lease-ttl", "200ms", "--owner", "me"], "running").crash();
    wait_for("the lease to run out", || {
        let answer = sandbox.run(&["--json", "explain", "t"]).expect(0).json();
        let words = answer["explanation"].as_str().unwrap();
        answer["source"] == "store"
            && words.contains("only what the store knows")
            && words.contains("(me, process ")
            && words.contains("reconcile")
    });
    sandbox.run_task("u", &["fail"]);
    let outcome = sandbox.run(&["explain", "u"]).expect(0);
    assert!(outcome.out.contains("executor:failed; exit_code:"), "{outcome:?}");
}
