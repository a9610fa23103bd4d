//! `pause` and `resume`.

use crate::support::Sandbox;

crate::on_each_store!(pause_and_resume_any_number_of_times, what_does_not_run_is_refused,);

/// `T` for a stopped process.
fn state(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().take(1).collect()
}

fn pause_and_resume_any_number_of_times(sandbox: &Sandbox) {
    let run = sandbox.start_task("t", &["nap"], "running");
    let pid = sandbox.until_written("nap.pid");
    for _ in 0..3 {
        let verdict = sandbox.run(&["--json", "pause", "t", "--wait", "60s"]).expect(0).json();
        assert_eq!(verdict[0]["confirmed"], true, "{verdict}");
        assert_eq!((sandbox.status("t")["status"].as_str(), &*state(&pid)), (Some("paused"), "T"));
        let verdict = sandbox.run(&["--json", "resume", "t", "--wait", "60s"]).expect(0).json();
        assert_eq!(verdict[0]["confirmed"], true, "{verdict}");
        assert_eq!(sandbox.status("t")["status"], "running");
        assert_ne!(state(&pid), "T");
    }
    sandbox.run(&["pause", "t", "--wait", "60s"]).expect(0);
    sandbox.run(&["stop", "t", "--wait", "60s"]).expect(0);
    run.finish().expect(3);
}

fn what_does_not_run_is_refused(sandbox: &Sandbox) {
    let _run = sandbox.start_task("t", &["later"], "retry_wait");
    for command in ["pause", "resume"] {
        let verdict = sandbox.run(&["--json", command, "t"]).expect(3).json();
        assert_eq!(verdict[0]["accepted"], false);
        assert!(verdict[0]["result"].as_str().unwrap().contains("retry_wait"), "{verdict}");
    }
    assert_eq!(sandbox.status("t")["status"], "retry_wait");
    sandbox.run(&["pause", "nobody"]).expect(1);
}
