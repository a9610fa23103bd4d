//! One run: set up, let the monkey act, let everything end, judge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::{Ownership, SystemClock};
use chongming_test_postgres::{Server, is_root};

use crate::checker::{self, Finding, Violation};
use crate::disk::SmallDisk;
use crate::history::History;
use crate::marks;
use crate::monkey::{Monkey, Outage};
use crate::options::{Options, Store};
use crate::programs::Programs;
use crate::store::{self, Database};

/// Short, so that a freeze of a moment outlives it; long enough for a machine that is busy.
const LEASE: Duration = Duration::from_secs(2);
/// How long what a killed supervisor left behind may take to vanish.
const LEFT_OVERS: Duration = Duration::from_secs(30);
/// So many violations of each kind are told one by one.
const MOST_TOLD: u32 = 10;
const OPENS_WITHIN: Duration = Duration::from_secs(60);
/// Set where mounts are our own.
const OWN_MOUNTS: &str = "TORTURE_OWN_MOUNTS";

/// Runs, and tells what was found.
pub(crate) fn torture(options: &Options) -> Result<ExitCode, String> {
    if options.store == Store::Sqlite && is_root() && std::env::var_os(OWN_MOUNTS).is_none() {
        // What is mounted in a name space of its own vanishes with the last of us.
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut again = Command::new("unshare");
        again.args(["--mount", "--propagation", "private", "--"]).arg(program);
        again.args(std::env::args_os().skip(1)).env(OWN_MOUNTS, "yes");
        let status = again.status().map_err(|error| format!("cannot start unshare: {error}"))?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let folder = fresh_folder()?;
    let found = run(options, &folder);
    let is_well = found.as_ref().is_ok_and(Vec::is_empty);
    if is_well && !options.keep {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    } else {
        println!("what is left of the run lies in {}", folder.display());
    }
    let findings = found?;
    let mut kinds: BTreeMap<Violation, u32> = BTreeMap::new();
    for finding in &findings {
        let seen = kinds.entry(finding.violation).or_default();
        *seen += 1;
        if *seen <= MOST_TOLD {
            println!("{finding}");
        }
    }
    for (kind, count) in kinds {
        println!("{kind:?}: {count}");
    }
    println!("{} violations (seed {})", findings.len(), options.seed);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn fresh_folder() -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("chongming-torture-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The server runs as another user, below it.
        let all_may_pass = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&folder, all_may_pass).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

fn run(options: &Options, folder: &Path) -> Result<Vec<Finding>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    marks::prepare(folder).map_err(failed)?;
    let disk = folder.join("disk");
    let (database, outage) = match &options.store {
        Store::Sqlite => {
            let outage = match SmallDisk::mount(&disk) {
                Ok(disk) => Outage::Disk(disk),
                Err(why) => {
                    println!("SKIPPED: a disk that is full; {why}");
                    fs::create_dir_all(&disk).map_err(failed)?;
                    Outage::Nothing
                }
            };
            (Database::Sqlite(disk.join("t.db")), outage)
        }
        Store::OwnPostgres => {
            let server = own_server(&folder.join("postgres"))?;
            (Database::Postgres(server.dsn()), Outage::Server(server))
        }
        Store::Postgres(dsn) => (Database::Postgres(dsn.clone()), Outage::Nothing),
    };
    drop(database.open()?);
    let programs = Programs::new(folder, database.clone(), LEASE)?;
    let mut monkey = Monkey::new(programs.clone(), options.seed, outage)?;
    monkey.act(options.duration, options.supervisors)?;
    monkey.finish()?;
    println!("{}", monkey.acts());
    let mut history = std::mem::take(&mut monkey.history);
    await_left_overs(&mut history, folder)?;
    settle(&database, &mut history)?;
    history.marks = marks::read(folder)?;
    history.panics = panics(&programs)?;
    let findings = checker::check(&history);
    tell(&history);
    if !findings.is_empty()
        && let Database::Sqlite(file) = &database
    {
        // The disk goes with us.
        fs::copy(file, folder.join("evidence.db")).map_err(failed)?;
        let wal = file.with_extension("db-wal");
        if wal.exists() {
            fs::copy(wal, folder.join("evidence.db-wal")).map_err(failed)?;
        }
    }
    Ok(findings)
}

/// A server of our own in this folder, to be stopped and started at bad moments.
fn own_server(folder: &Path) -> Result<Server, String> {
    let programs = chongming_test_postgres::programs();
    let programs = programs.ok_or("there is no Postgres here: install postgresql")?;
    fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut server = Server::make(&programs, folder)?;
    server.start()?;
    Ok(server)
}

/// What killed supervisors left behind ends soon, or never.
fn await_left_overs(history: &mut History, folder: &Path) -> Result<(), String> {
    let until = Instant::now() + LEFT_OVERS;
    loop {
        history.still_locked = marks::locked(folder)?;
        if history.still_locked.is_empty() || Instant::now() > until {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Once all leases have run out, reconcile says what became of everything; then the rows are read.
fn settle(database: &Database, history: &mut History) -> Result<(), String> {
    let store = database.await_open(OPENS_WITHIN)?;
    thread::sleep(LEASE);
    let ownership = Ownership::new(chongming_core::DEFAULT_NUM_BUCKETS, None);
    let ownership = ownership.map_err(|error| error.to_string())?;
    let clock = SystemClock::default();
    chongming_core::reconcile(&*store, &ownership, false, Some("the end"), &clock)
        .map_err(|error| error.to_string())?;
    store::read(&*store, history)?;
    store.close().map_err(|error| error.to_string())
}

/// What programs said about panics of their own.
fn panics(programs: &Programs) -> Result<Vec<String>, String> {
    let mut panics = Vec::new();
    let failed = |error: std::io::Error| format!("what was said: {error}");
    for entry in fs::read_dir(programs.said()).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let text = String::from_utf8_lossy(&fs::read(&path).map_err(failed)?).into_owned();
        if let Some(line) = text.lines().find(|line| line.contains("panicked at")) {
            panics.push(format!("{}: {line}", path.display()));
        }
    }
    Ok(panics)
}

fn tell(history: &History) {
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    for task in &history.tasks {
        *statuses.entry(&task.status).or_default() += 1;
    }
    let rows: usize = history.tasks.iter().map(|task| task.rows.len()).sum();
    let statuses: Vec<_> = statuses.iter().map(|(s, count)| format!("{s} {count}")).collect();
    println!(
        "{} tasks with {rows} rows and {} commands by {} supervisors: {}",
        history.tasks.len(),
        history.commands.len(),
        history.supervisors.len(),
        statuses.join(", ")
    );
    let adopted = history.tasks.iter().flat_map(|task| &task.rows);
    let adopted = adopted.filter(|row| row.trigger == "recovery:adopted").count();
    println!("{} marks of bodies, {adopted} adoptions", history.marks.len());
}
