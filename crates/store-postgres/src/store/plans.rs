//! On 100,000 rows the common questions are answered by indexes, and no batch is joined row by row.

use std::io::Write;

use chongming_core::store::{Now, TaskFilter};
use chongming_core::{BucketSet, IncarnationId, Status, StatusSet};

use super::PostgresStore;
use crate::commands;
use crate::connection::{Link, Parameters};
use crate::options::Options;
use crate::query::page_statement;
use crate::row::get;
use crate::statement::{Shape, Trust};

/// Of each hundred tasks one is unfinished and one has failed; 500 holders; every thousandth command is open.
const FILL: &str = "INSERT INTO ~tasks (id, status, status_version, name, owner, supervisor, created_at, \
        updated_at, attempt, max_attempts, priority, bucket, tags) \
    SELECT 'task-' || i, CASE i % 100 WHEN 0 THEN 5 WHEN 1 THEN 10 ELSE 9 END, 4, 'n', 'o', \
        'life-' || (i / 100) % 500, now(), now(), 1, 1, 0, i % 64, \
        CASE WHEN i % 1000 = 0 THEN '[\"gpu\"]'::jsonb END FROM generate_series(1, 100000) i; \
    INSERT INTO ~transitions (task_seq, version, at, from_status, to_status, trigger) \
    SELECT seq, version, now(), 0, 2, 0 FROM ~tasks, generate_series(1, 2) version; \
    INSERT INTO ~commands (id, task_id, holder, kind, issuer, issued_at, receipt) \
    SELECT 'c-' || i, 'task-' || i, 'life-' || i % 10, 'stop', 'me', now(), \
        CASE WHEN i % 1000 > 0 THEN 'applied' END FROM generate_series(1, 100000) i; \
    ANALYZE ~tasks; ANALYZE ~transitions; ANALYZE ~commands";

/// Two plans for a statement: for these parameters, and for whatever parameters, which the server makes once.
fn plans(link: &mut Link, sql: &str, parameters: &Parameters<'_>) -> [String; 2] {
    let lines = |link: &mut Link, sql: &str, parameters: &Parameters<'_>| {
        let rows = link.query(sql, parameters).unwrap();
        rows.iter().map(|row| get(row, 0).unwrap()).collect::<Vec<String>>().join("\n")
    };
    let own = lines(link, &format!("EXPLAIN {sql}"), parameters);
    link.script(&format!("PREPARE q AS {sql}; SET plan_cache_mode = force_generic_plan")).unwrap();
    let nothing = vec!["NULL"; parameters.len()].join(", ");
    let generic = lines(link, &format!("EXPLAIN EXECUTE q({nothing}) -- {sql}"), &[]);
    link.batch("DEALLOCATE q; RESET plan_cache_mode").unwrap();
    [own, generic]
}

#[track_caller]
fn uses(link: &mut Link, filter: TaskFilter, index: &str) {
    let statement = page_statement(&filter, i64::MAX, 101).unwrap();
    for plan in plans(link, &statement.sql, &statement.parameters()) {
        assert!(plan.contains(index) && !plan.contains("Seq Scan on tasks"), "{filter:?}\n{plan}");
    }
}

#[test]
fn indexes_are_used() {
    let Ok(dsn) = std::env::var("CHONGMING_TEST_POSTGRES") else {
        let _ =
            writeln!(std::io::stderr(), "skipped plans: CHONGMING_TEST_POSTGRES names no server");
        assert!(std::env::var_os("CI").is_none(), "with CI set every test must run");
        return;
    };
    let schema = format!("test_plans_{}", IncarnationId::generate());
    let options = Options { schema: schema.clone(), ..Options::default() };
    let store = PostgresStore::connect(&dsn, options).unwrap();
    let mut link = store.link("test").unwrap();
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mut link)));
    link.batch(&format!("SET client_min_messages = warning; DROP SCHEMA {schema} CASCADE"))
        .unwrap();
    if let Err(failure) = checked {
        std::panic::resume_unwind(failure);
    }
}

fn check(link: &mut Link) {
    link.script(FILL).unwrap();
    let all = TaskFilter::default;
    let unfinished = || TaskFilter { statuses: Some(StatusSet::unfinished()), ..all() };
    let states = |states: &[Status]| TaskFilter {
        statuses: Some(states.iter().copied().collect()),
        ..all()
    };
    let holder = Some(IncarnationId::new("life-1").unwrap());
    uses(link, all(), "Index Scan Backward using tasks_pkey");
    uses(link, unfinished(), "Index Scan Backward using tasks_unfinished");
    uses(link, states(&[Status::Running]), "Index Scan Backward using tasks_unfinished");
    uses(link, states(&[Status::Failed]), "Index Scan Backward using tasks_ended_badly");
    let mixed = states(&[Status::Failed, Status::Lost, Status::Running]);
    uses(link, mixed.clone(), "Index Scan Backward using tasks_ended_badly");
    uses(link, mixed, "Index Scan Backward using tasks_unfinished");
    let held = TaskFilter { supervisor: holder, ..unfinished() };
    uses(link, held.clone(), "Index Scan Backward using tasks_by_holder");
    let living = TaskFilter { lease_expired: Some((false, Now::Store)), ..held };
    uses(link, living, "using tasks_by_holder");
    let mine = TaskFilter { buckets: Some(BucketSet::from_iter([1, 2])), ..unfinished() };
    uses(link, mine, "using tasks_unfinished");

    let now: Option<crate::row::Time> = None;
    for plan in plans(link, commands::CLAIMABLE, &[&"life-1", &now, &10_i64]) {
        assert!(plan.contains("commands_open"), "{plan}");
    }
    batches_are_hashed(link);
}

/// With arrays whose length the server does not know, rows of a batch meet each other by hashing, and those
/// of the tables by their index.
fn batches_are_hashed(link: &mut Link) {
    for trust in [Trust::AllNew, Trust::Nothing] {
        let sql = Shape { trust, creates: true, saves: true, touches: true }.sql();
        link.script(&format!("PREPARE q AS {sql}; SET plan_cache_mode = force_generic_plan"))
            .unwrap();
        let count: i32 = {
            let asked =
                "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'q'";
            get(&link.query_one(asked, &[]).unwrap(), 0).unwrap()
        };
        let nothing = vec!["NULL"; usize::try_from(count).unwrap()].join(", ");
        let rows = link.query(&format!("EXPLAIN EXECUTE q({nothing}) -- {trust:?}"), &[]).unwrap();
        let plan: Vec<String> = rows.iter().map(|row| get(row, 0).unwrap()).collect();
        let plan = plan.join("\n");
        link.batch("DEALLOCATE q; RESET plan_cache_mode").unwrap();
        assert!(!plan.contains("Seq Scan on tasks"), "{plan}");
        assert_eq!(plan.matches("Index Scan using tasks_id_key").count(), 2, "{plan}");
        assert_eq!(plan.matches("Nested Loop").count(), 2, "{plan}");
        assert_eq!(plan.matches("Hash Join").count(), 3, "{plan}");
    }
}
