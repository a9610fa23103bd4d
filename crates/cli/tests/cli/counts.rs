//! `stats` and `buckets`.

use crate::support::Sandbox;

crate::on_each_store!(tasks_are_counted_by_status_and_bucket,);

fn tasks_are_counted_by_status_and_bucket(sandbox: &Sandbox) {
    sandbox.run_task("a", &["say", "--arg", "x=tenant-A"]);
    sandbox.run_task("b", &["say", "--arg", "x=tenant-B"]);
    sandbox.run_task("c", &["fail"]);
    let stats = sandbox.run(&["--json", "stats"]).expect(0).json();
    assert_eq!((&stats["total"], &stats["by_status"]["succeeded"]), (&3.into(), &2.into()));
    assert_eq!(stats["by_status"].as_object().unwrap().len(), 15);
    assert!(sandbox.run(&["stats"]).expect(0).out.contains("failed     1"));

    let rows = sandbox.run(&["--json", "--owned-buckets", "0-15,20", "buckets"]).expect(0).json();
    let row = |bucket: u64| {
        rows.as_array().unwrap().iter().find(|row| row["bucket"] == bucket).unwrap().clone()
    };
    assert_eq!((&row(7)["owned"], &row(7)["total"]), (&true.into(), &1.into()));
    assert_eq!((&row(28)["owned"], &row(28)["total"]), (&false.into(), &1.into()));
    let table = sandbox.run(&["--owned-buckets", "7", "buckets"]).expect(0).out;
    assert_eq!(table.lines().filter(|line| line.contains('*')).count(), 1, "{table}");
}
