//! How long a stop takes that comes from another connection to the same file, beside the same writes without a
//! controller: the command's row, its claim, and the end with its two audit rows, with a doorbell in between.
//!
//! `--json` prints one object a line.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::IncarnationId;
use chongming_store_sqlite::{Options, SqliteStore, Synchronous};
use rusqlite::{Connection, params};

#[path = "support/report.rs"]
mod report;
#[path = "support/stop.rs"]
mod stop;

use report::Report;
use stop::{PAUSE, SAMPLES, percentiles};

type Anything = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    let report = Report::from_args();
    for (name, synchronous) in [("normal", Synchronous::Normal), ("full", Synchronous::Full)] {
        let name = format!("sqlite_{name}_stop");
        if !report.wants(&name) {
            continue;
        }
        let open =
            |path: &Path| SqliteStore::open(path, Options { synchronous, ..Options::default() });
        let raw = percentiles(in_folder(|path| raw(path, &open(path)?, synchronous))?);
        let ours = percentiles(in_folder(|path| {
            stop::through_controller(Arc::new(open(path)?), &open(path)?)
        })?);
        report.line(&format!("{name}_p50"), ours.0, "µs", raw.0);
        report.line(&format!("{name}_p99"), ours.1, "µs", raw.1);
    }
    Ok(())
}

fn in_folder<T>(run: impl FnOnce(&Path) -> Result<T, Anything>) -> Result<T, Anything> {
    let folder = tempfile::tempdir()?;
    run(&folder.path().join("bench.db"))
}

fn connect(path: &Path, synchronous: Synchronous) -> Result<Connection, Anything> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let synchronous = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}"))?;
    Ok(connection)
}

const AT: i64 = 1_800_000_000_000_000;

fn raw(
    path: &Path,
    store: &SqliteStore,
    synchronous: Synchronous,
) -> Result<Vec<Duration>, Anything> {
    let holder = IncarnationId::generate();
    let (bell, rung) = UnixDatagram::pair()?;
    let issuer = connect(path, synchronous)?;
    let mut submit = issuer.prepare(
        "INSERT INTO commands (id, task_id, holder, kind, reason, issuer, issued_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
    )?;
    thread::scope(|scope| {
        let work = || attend(path, synchronous, &rung, holder.as_str());
        let attending = scope.spawn(work);
        let mut times = Vec::new();
        for _ in 0..SAMPLES {
            let task = stop::running(store, &holder)?;
            let command = stop::stop(&task, &holder);
            thread::sleep(PAUSE);
            let since = Instant::now();
            submit.execute(params![
                command.id.as_str(),
                task.as_str(),
                holder.as_str(),
                "stop",
                "enough",
                "bench",
                AT
            ])?;
            bell.send(&[1])?;
            bell.recv(&mut [0; 1])?;
            times.push(since.elapsed());
        }
        drop(bell.shutdown(std::net::Shutdown::Both));
        attending.join().map_err(|_| "the holder panicked")??;
        Ok(times)
    })
}

/// The holder's part.
fn attend(
    path: &Path,
    synchronous: Synchronous,
    rung: &UnixDatagram,
    holder: &str,
) -> Result<(), Anything> {
    let connection = connect(path, synchronous)?;
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut claim = connection.prepare(
        "UPDATE commands SET claimed_until = ?2 WHERE seq IN (SELECT seq FROM commands WHERE holder = ?1 \
         AND receipt IS NULL AND claimed_until IS NULL ORDER BY seq LIMIT 64) RETURNING task_id",
    )?;
    let mut end = connection.prepare(
        "UPDATE tasks SET status = 11, status_version = 5, ended_at = ?2, updated_at = ?2 \
         WHERE id = ?1 AND status_version = 3 RETURNING seq",
    )?;
    let mut append = connection.prepare(
        "INSERT INTO transitions VALUES (?1, 4, 5, 8, ?2, 4, 'enough'), (?1, 5, 8, 11, ?2, 15, 'enough')",
    )?;
    let mut complete = connection.prepare("UPDATE commands SET receipt = '' WHERE task_id = ?1")?;
    for _ in 0..SAMPLES {
        rung.recv(&mut [0; 1])?;
        begin.raw_execute()?;
        let task: String = claim.query_row(params![holder, AT], |row| row.get(0))?;
        commit.raw_execute()?;
        begin.raw_execute()?;
        let seq: i64 = end.query_row(params![task, AT], |row| row.get(0))?;
        append.execute(params![seq, AT])?;
        commit.raw_execute()?;
        rung.send(&[1])?;
        complete.execute([task])?;
    }
    Ok(())
}
