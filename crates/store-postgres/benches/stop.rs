//! How long a stop takes that comes over another connection to the same server, beside the same writes without a
//! controller: the command's row, its claim, and the end with its two audit rows, with NOTIFY in between.
//!
//! `--json` prints one object a line. `CHONGMING_TEST_POSTGRES` names the server; `cargo xtask bench` starts one.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::IncarnationId;
use chongming_store_postgres::{Options, PostgresStore};
use postgres::fallible_iterator::FallibleIterator;

#[path = "../../store-sqlite/benches/support/report.rs"]
mod report;
#[path = "support/server.rs"]
mod server;
#[path = "../../store-sqlite/benches/support/stop.rs"]
mod stop;

use report::Report;
use server::{Anything, Server};
use stop::{PAUSE, SAMPLES, percentiles};

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    if !report.wants("postgres_stop") {
        return Ok(());
    }
    let Some(server) = Server::find() else { return Ok(()) };
    let raw = percentiles(server.fresh(|| raw(&server))?);
    let ours = percentiles(
        server
            .fresh(|| stop::through_controller(Arc::new(connect(&server)?), &connect(&server)?))?,
    );
    report.line("postgres_stop_p50", ours.0, "µs", raw.0);
    report.line("postgres_stop_p99", ours.1, "µs", raw.1);
    server.clear()
}

fn connect(server: &Server) -> Result<PostgresStore, Anything> {
    let options = Options { schema: server::SCHEMA.to_owned(), ..Options::default() };
    Ok(PostgresStore::connect(&server.dsn, options)?)
}

const SUBMIT: &str = "WITH new AS (INSERT INTO commands (id, task_id, holder, kind, reason, issuer, issued_at) \
    VALUES ($1, $2, $3, 'stop', 'enough', 'bench', to_timestamp(1800000000)) RETURNING holder) \
    SELECT pg_notify('bench_stop', holder) FROM new";

const CLAIM: &str = "WITH picked AS MATERIALIZED (SELECT seq FROM commands WHERE holder = $1 AND receipt IS NULL \
    AND claimed_until IS NULL ORDER BY seq LIMIT 64 FOR UPDATE SKIP LOCKED) \
    UPDATE commands c SET claimed_until = to_timestamp(1800000000) FROM picked WHERE c.seq = picked.seq \
    RETURNING c.task_id";

const END: &str = "WITH saved AS (UPDATE tasks SET status = 11, status_version = 5, \
    ended_at = to_timestamp(1800000001), updated_at = to_timestamp(1800000001) \
    WHERE id = $1 AND status_version = 3 RETURNING seq), \
    trail AS (INSERT INTO transitions (task_seq, version, at, from_status, to_status, trigger, reason) \
    SELECT s.seq, r.version, to_timestamp(1800000001), r.f, r.t, r.g, 'enough' FROM saved s, \
    (VALUES (4, 5, 8, 4), (5, 8, 11, 15)) r(version, f, t, g)) SELECT count(*) FROM saved";

fn raw(server: &Server) -> Result<Vec<Duration>, Anything> {
    let (store, holder) = (connect(server)?, IncarnationId::generate());
    let mut issuer = server.client()?;
    let submit = issuer.prepare(SUBMIT)?;
    let mut listener = server.client()?;
    listener.batch_execute("LISTEN bench_stop")?;
    let (tell, ended) = mpsc::channel();
    thread::scope(|scope| {
        let holder = &holder;
        let attending = scope.spawn(move || -> Result<(), Anything> {
            let (claim, end) = (listener.prepare(CLAIM)?, listener.prepare(END)?);
            let complete =
                listener.prepare("UPDATE commands SET receipt = '' WHERE task_id = $1")?;
            for _ in 0..SAMPLES {
                listener.notifications().blocking_iter().next()?;
                let row = listener.query_one(&claim, &[&holder.as_str()])?;
                let task: &str = row.try_get(0)?;
                tell.send(listener.query_one(&end, &[&task])?.try_get::<_, i64>(0)?)?;
                listener.execute(&complete, &[&task])?;
            }
            Ok(())
        });
        let mut times = Vec::new();
        for _ in 0..SAMPLES {
            let task = stop::running(&store, holder)?;
            let command = stop::stop(&task, holder);
            thread::sleep(PAUSE);
            let since = Instant::now();
            issuer.query_one(&submit, &[&command.id.as_str(), &task.as_str(), &holder.as_str()])?;
            if ended.recv()? != 1 {
                return Err("the raw loop could not change a row".into());
            }
            times.push(since.elapsed());
        }
        attending.join().map_err(|_| "the holder panicked")??;
        Ok(times)
    })
}
