//! Servers that do not answer, or speak no TLS; most of them need no real one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chongming_core::TaskId;
use chongming_core::store::{StoreErrorKind, TaskStore};
use chongming_store_postgres::{Options, PostgresStore};
use postgres::config::Host;

use crate::support::{Schema, create, error, skipped, total};

/// Answers the first connection like this, and keeps it open until the client gives up.
fn fake(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move |mut stream: TcpStream| {
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(answer).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    };
    thread::spawn(move || listener.accept().map(|(stream, _)| serve(stream)));
    port
}

fn connect(port: u16, parameters: &str) -> (StoreErrorKind, String) {
    let dsn = format!("postgresql://me:secret@127.0.0.1:{port}/db?{parameters}");
    let short = Duration::from_millis(20);
    let options =
        Options { connect_timeout: short, statement_timeout: short, ..Options::default() };
    let error = error(PostgresStore::connect(&dsn, options));
    let text = format!("{error} {error:?}");
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{port}/db")), "{text}");
    (error.kind(), text)
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    for mode in ["disable", "prefer", "require"] {
        let (kind, text) = connect(fake(b""), &format!("sslmode={mode}"));
        assert_eq!(kind, StoreErrorKind::Unavailable, "{text}");
        assert!(text.contains("did not answer within 40ms"), "{text}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_was_asked_for() {
    let (kind, text) = connect(fake(b"N"), "sslmode=require");
    assert_eq!(kind, StoreErrorKind::Denied, "{text}");
    assert!(text.contains("the server does not offer TLS"), "{text}");
    // Otherwise the plain talk goes on, here with nobody.
    let (kind, text) = connect(fake(b"N"), "sslmode=prefer");
    assert_eq!(kind, StoreErrorKind::Unavailable, "{text}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    // Nobody listens there: the port was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (kind, text) = connect(port, "");
    assert_eq!(kind, StoreErrorKind::Unavailable, "{text}");
    assert!(text.contains("cannot be reached; check that it runs"), "{text}");
}

/// Stands between a store and its server, and lets nothing through while it is blocked.
fn proxy(server: (String, u16), blocked: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let blocked = Arc::clone(blocked);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect((server.0.as_str(), server.1)).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for (from, to) in [(client, server), back] {
                let blocked = Arc::clone(&blocked);
                thread::spawn(move || forward(from, to, &blocked));
            }
        }
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream, blocked: &AtomicBool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !blocked.load(Ordering::Acquire) && to.write_all(buffer.get(..count).unwrap()).is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_falls_silent_is_given_up_and_met_again() {
    let Some(schema) = Schema::fresh("a server that falls silent") else { return };
    let config: postgres::Config = schema.dsn.parse().unwrap();
    let (Some(Host::Tcp(host)), Some(port)) =
        (config.get_hosts().first(), config.get_ports().first())
    else {
        return skipped("a server that falls silent", "this one is reached by a socket");
    };
    let blocked = Arc::new(AtomicBool::new(false));
    let through = proxy((host.clone(), *port), &blocked);
    let dsn = schema.dsn.replace(&format!("{host}:{port}"), &format!("127.0.0.1:{through}"));
    let options = Options {
        connect_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_millis(100),
        ..schema.options()
    };
    schema.connect().close().unwrap();
    let store = PostgresStore::connect_existing(&dsn, options).unwrap();
    store.write(&[create("a")]).unwrap();
    blocked.store(true, Ordering::Release);
    let error = store.write(&[create("b")]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("did not answer within 2.1s"), "{error}");
    blocked.store(false, Ordering::Release);
    assert!(store.get(&TaskId::new("a").unwrap()).unwrap().is_some());
    assert_eq!(store.write(&[create("c")]).unwrap(), vec![Ok(())]);
    assert_eq!(total(&store), 2);
}
