//! Behind a pooler that is as harsh as one can be: each transaction goes to another session.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;

use chongming_contract::{Data, Fixture};
use chongming_core::IncarnationId;
use chongming_core::store::{StoreErrorKind, TaskStore};
use chongming_store_postgres::PostgresStore;
use postgres::config::Host;

use crate::support::{self, Schema, create, error, total};

/// What the pooler does with a connection's `options`, of which it understands nothing.
#[derive(Clone, Copy, PartialEq)]
enum Parameters {
    /// As PgBouncer does by default.
    Refused,
    /// As with `ignore_startup_parameters = options`.
    Ignored,
    /// A connection is refused whatever it brings.
    AllRefused,
}

/// Sessions on the server, each for one transaction at a time; the one that rested longest comes next.
struct Sessions {
    resting: Mutex<VecDeque<TcpStream>>,
    came_back: Condvar,
}

const SESSIONS: usize = 4;

impl Sessions {
    fn take(&self) -> TcpStream {
        let mut resting = self.resting.lock().unwrap();
        loop {
            match resting.pop_front() {
                Some(session) => return session,
                None => resting = self.came_back.wait(resting).unwrap(),
            }
        }
    }

    fn give_back(&self, session: TcpStream) {
        self.resting.lock().unwrap().push_back(session);
        self.came_back.notify_one();
    }
}

/// A message of the protocol, after its first.
fn message(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
    stream.read_exact(&mut body)?;
    Ok((kind, body))
}

fn written(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// The first message, which has no kind.
fn first(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn session(server: (&str, u16)) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    let body = [&196_608_u32.to_be_bytes()[..], b"user\0postgres\0database\0postgres\0\0"].concat();
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    stream.write_all(&[&length[..], &body].concat()).unwrap();
    while message(&mut stream).unwrap().0 != b'Z' {}
    stream
}

/// Starts one; its port.
fn pooler(dsn: &str, parameters: Parameters) -> u16 {
    let config: postgres::Config = dsn.parse().unwrap();
    let server = match (config.get_hosts().first(), config.get_ports().first()) {
        (Some(Host::Tcp(host)), Some(port)) => (host.as_str(), *port),
        other => panic!("the tests need a server by TCP: {other:?}"),
    };
    let resting = (0..SESSIONS).map(|_| session(server)).collect();
    let sessions = Arc::new(Sessions { resting: Mutex::new(resting), came_back: Condvar::new() });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, sessions) = (client.unwrap(), Arc::clone(&sessions));
            thread::spawn(move || serve(client, parameters, &sessions));
        }
    });
    port
}

/// One client, to its end.
fn serve(mut client: TcpStream, parameters: Parameters, sessions: &Sessions) -> io::Result<()> {
    client.set_nodelay(true)?;
    let asked = first(&mut client)?;
    let has_options = asked.windows(9).any(|part| part == b"\0options\0");
    if parameters == Parameters::AllRefused || (has_options && parameters == Parameters::Refused) {
        let said = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
        return client.write_all(&written(b'E', said));
    }
    let ready = [written(b'R', &[0; 4]), written(b'K', &[0; 8]), written(b'Z', b"I")].concat();
    client.write_all(&ready)?;
    let mut held = None;
    let mut request = Vec::new();
    loop {
        let (kind, body) = message(&mut client)?;
        if kind == b'X' {
            return Ok(());
        }
        request.extend(written(kind, &body));
        if !matches!(kind, b'S' | b'Q') {
            continue;
        }
        let mut session: TcpStream = held.take().unwrap_or_else(|| sessions.take());
        session.write_all(&std::mem::take(&mut request))?;
        loop {
            let (kind, body) = message(&mut session)?;
            client.write_all(&written(kind, &body))?;
            match (kind, body.as_slice()) {
                (b'Z', b"I") => break sessions.give_back(session),
                (b'Z', _) => break held = Some(session),
                _ => {}
            }
        }
    }
}

fn through(port: u16) -> String {
    format!("postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
}

/// For the clauses of the contract.
struct Pooled;

struct Tables(Schema);

impl Fixture for Pooled {
    fn missing(&self) -> Option<String> {
        support::server().err()
    }

    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Tables(Schema::on(support::server().unwrap())))
    }
}

impl Data for Tables {
    fn connect(&self) -> Arc<dyn TaskStore> {
        static PORT: OnceLock<u16> = OnceLock::new();
        let port = *PORT.get_or_init(|| pooler(&self.0.dsn, Parameters::Refused));
        Arc::new(PostgresStore::connect(&through(port), self.0.options()).unwrap())
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
fn one_that_ignores_parameters_is_recognised_too() {
    let Some(schema) = Schema::fresh("a pooler that ignores parameters") else { return };
    let dsn = through(pooler(&schema.dsn, Parameters::Ignored));
    let store = PostgresStore::connect(&dsn, schema.options()).unwrap();
    for number in 0..10_u64 {
        assert_eq!(store.write(&[create(&format!("task-{number}"))]).unwrap(), vec![Ok(())]);
        assert_eq!(total(&store), number + 1);
    }
}

#[test]
fn sessions_of_others_are_left_as_they_are() {
    let Some(schema) = Schema::fresh("settings behind a pooler") else { return };
    let dsn = through(pooler(&schema.dsn, Parameters::Ignored));
    let store = PostgresStore::connect(&dsn, schema.options()).unwrap();
    store.write(&[create("a")]).unwrap();
    store.subscribe(&IncarnationId::generate(), Arc::new(|| ()));
    let mut other = postgres::Client::connect(&dsn, postgres::NoTls).unwrap();
    for _ in 0..SESSIONS {
        let asked = "SELECT current_setting('statement_timeout'), \
             (SELECT count(*) FROM pg_prepared_statements), \
             (SELECT count(*) FROM pg_listening_channels())";
        let rows = other.simple_query(asked).unwrap();
        let row = rows.iter().find_map(|part| match part {
            postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.unwrap();
        assert_eq!([row.get(0), row.get(1), row.get(2)], [Some("0"), Some("0"), Some("0")]);
    }
}

#[test]
fn one_that_lets_nobody_in_is_told_in_its_own_words() {
    let Some(schema) = Schema::fresh("a pooler that refuses") else { return };
    let dsn = through(pooler(&schema.dsn, Parameters::AllRefused));
    let error = error(PostgresStore::connect(&dsn, schema.options()));
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("unsupported startup parameter"), "{error}");
}
