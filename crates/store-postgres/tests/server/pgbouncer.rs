//! Behind a real PgBouncer in its mode of transactions, where one is installed.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chongming_contract::{Data, Fixture};
use chongming_core::store::{TaskFilter, TaskStore};
use chongming_core::{
    CloseMode, Controller, Status, Submit, TaskContext, TaskDefinition, TaskError,
};
use chongming_store_postgres::PostgresStore;
use postgres::config::Host;
use tempfile::TempDir;

use crate::support::{self, Schema, skipped};

/// What PgBouncer does with a connection's `options`.
#[derive(Clone, Copy)]
enum Parameters {
    /// What it does by default.
    Refused,
    Ignored,
}

/// Sessions on the server: fewer than the connections that the tests open.
const SESSIONS: usize = 3;

/// Ends when dropped.
struct PgBouncer {
    process: Child,
    dsn: String,
    _folder: TempDir,
}

/// Where it is installed; Debian's is for administrators.
fn program() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut programs = folders.map(|folder| folder.join("pgbouncer"));
    programs
        .find(|program| program.is_file())
        .ok_or_else(|| "pgbouncer is not installed".to_owned())
}

/// Why these tests cannot run, if they cannot. Unlike a server, PgBouncer may be missing with CI set, too.
fn missing() -> Option<String> {
    program().err().or_else(|| support::server().err())
}

impl PgBouncer {
    /// One in front of this server.
    fn start(server: &str, parameters: Parameters) -> Self {
        let config: postgres::Config = server.parse().unwrap();
        let (Some(Host::Tcp(host)), Some(port)) =
            (config.get_hosts().first(), config.get_ports().first())
        else {
            panic!("the tests need a server by TCP: {config:?}");
        };
        let user = config.get_user().unwrap();
        let password = String::from_utf8_lossy(config.get_password().unwrap_or_default());
        let folder = tempfile::tempdir().unwrap();
        chongming_test_postgres::give(folder.path()).unwrap();
        let users = folder.path().join("users");
        fs::write(&users, format!("\"{user}\" \"{password}\"\n")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_port = listener.local_addr().unwrap().port();
        drop(listener);
        let ignored = match parameters {
            Parameters::Refused => "",
            Parameters::Ignored => "ignore_startup_parameters = options",
        };
        let settings = folder.path().join("settings");
        let text = format!(
            "[databases]\n* = host={host} port={port}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own_port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = {SESSIONS}\nserver_tls_sslmode = prefer\n{ignored}\n",
            users.display()
        );
        fs::write(&settings, text).unwrap();
        let mut command = chongming_test_postgres::unprivileged(&program().unwrap(), folder.path());
        command.arg("--quiet").arg(&settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let database = config.get_dbname().unwrap_or(user);
        let dsn = format!("postgresql://{user}@127.0.0.1:{own_port}/{database}?sslmode=disable");
        let mut bouncer = Self { process, dsn, _folder: folder };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", own_port)).is_err() {
            let ended = bouncer.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "pgbouncer: {ended:?}");
            thread::sleep(Duration::from_millis(5));
        }
        bouncer
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Its connections are closed in order; killed harder, it would leave the server's half open.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// For the clauses of the contract.
struct Pooled;

struct Tables {
    bouncer: PgBouncer,
    /// Dropped on the server itself.
    schema: Schema,
}

impl Fixture for Pooled {
    fn missing(&self) -> Option<String> {
        missing()
    }

    fn fresh(&self) -> Box<dyn Data> {
        let schema = Schema::on(support::server().unwrap());
        Box::new(Tables { bouncer: PgBouncer::start(&schema.dsn, Parameters::Refused), schema })
    }
}

impl Data for Tables {
    fn connect(&self) -> Arc<dyn TaskStore> {
        Arc::new(PostgresStore::connect(&self.bouncer.dsn, self.schema.options()).unwrap())
    }

    fn outlives_close(&self) -> bool {
        true
    }
}

mod clauses {
    use super::*;
    chongming_contract::contract_tests!(Pooled);
}

#[test]
fn a_controller_works_through_it() {
    const TASKS: u64 = 300;
    if let Some(why) = missing() {
        return skipped("a controller behind PgBouncer", &why);
    }
    for parameters in [Parameters::Refused, Parameters::Ignored] {
        let schema = Schema::on(support::server().unwrap());
        let bouncer = PgBouncer::start(&schema.dsn, parameters);
        let controllers: Vec<Controller> = (0..4)
            .map(|_| {
                let store = PostgresStore::connect(&bouncer.dsn, schema.options()).unwrap();
                let double = |_: &TaskContext, number: u64| Ok::<_, TaskError>(number * 2);
                Controller::builder()
                    .store(Arc::new(store))
                    .register(TaskDefinition::new("double", double))
                    .build()
                    .unwrap()
            })
            .collect();
        for controller in &controllers {
            let tasks = (0..TASKS).map(|number| Submit::new("double").args(number));
            assert!(controller.submit_many(tasks).iter().all(Result::is_ok));
        }
        for controller in controllers {
            controller.wait_all(None).unwrap();
            assert_eq!(controller.persist_failures(), []);
            let closed = controller.close(CloseMode::Wait, Duration::from_secs(30), true);
            assert!(closed.is_clean(), "{closed:?}");
        }
        let counts = schema.connect().count(&TaskFilter::default()).unwrap();
        let counts: Vec<_> = counts.iter().map(|count| (count.status, count.tasks)).collect();
        assert_eq!(counts, [(Status::Succeeded, 4 * TASKS)]);
    }
}
