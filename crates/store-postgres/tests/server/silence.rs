//! Servers that do not answer, or speak no TLS: no real one is needed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use chongming_core::store::StoreErrorKind;
use chongming_store_postgres::{Options, PostgresStore};

use crate::support::error;

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
