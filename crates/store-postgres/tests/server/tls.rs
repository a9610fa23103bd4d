//! `sslmode` as libpq has it, never weaker than what was asked for.

use chongming_core::store::StoreErrorKind;
use chongming_store_postgres::{Options, PostgresStore};

use crate::support::{AUTHORITY, Schema, error, skipped};

/// Connects with these parameters at this name of the server; says whether the stream is encrypted.
fn connect(
    schema: &Schema,
    host: &str,
    parameters: &str,
) -> Result<bool, (StoreErrorKind, String)> {
    let dsn = schema.dsn.replace("127.0.0.1", host);
    let (place, _) = dsn.split_once('?').unwrap_or((&dsn, ""));
    let name = &schema.name;
    let dsn = format!("{place}?application_name={name}&{parameters}");
    match PostgresStore::connect(&dsn, Options { schema: name.clone(), ..Options::default() }) {
        Err(error) => Err((error.kind(), error.to_string())),
        Ok(store) => {
            let sql = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                       WHERE a.application_name = left($1, 63)";
            let encrypted = schema.client().query_one(sql, &[name]).unwrap().get(0);
            drop(store);
            Ok(encrypted)
        }
    }
}

fn refused(seen: Result<bool, (StoreErrorKind, String)>, words: &str) {
    let (kind, text) = seen.unwrap_err();
    assert_eq!(kind, StoreErrorKind::Denied, "{text}");
    assert!(text.contains("sslmode") && text.contains(words), "{text}");
}

fn fresh(test: &str) -> Option<(Schema, String)> {
    let schema = Schema::fresh(test)?;
    match std::env::var(AUTHORITY) {
        Ok(authority) => Some((schema, authority)),
        Err(_) => {
            skipped(test, &format!("{AUTHORITY} names no certificate"));
            None
        }
    }
}

#[test]
fn modes_that_do_not_verify() {
    let Some((schema, _)) = fresh("TLS without verification") else { return };
    assert_eq!(connect(&schema, "127.0.0.1", "sslmode=disable"), Ok(false));
    assert_eq!(connect(&schema, "127.0.0.1", ""), Ok(true));
    assert_eq!(connect(&schema, "127.0.0.1", "sslmode=prefer"), Ok(true));
    assert_eq!(connect(&schema, "127.0.0.1", "sslmode=require"), Ok(true));
}

#[test]
fn modes_that_verify() {
    let Some((schema, authority)) = fresh("TLS with verification") else { return };
    let with = |mode: &str, roots: &str| format!("sslmode={mode}&sslrootcert={roots}");
    // The certificate is made out to this name, not to the address.
    assert_eq!(connect(&schema, "localhost", &with("verify-full", &authority)), Ok(true));
    assert_eq!(connect(&schema, "127.0.0.1", &with("verify-ca", &authority)), Ok(true));
    let full = connect(&schema, "127.0.0.1", &with("verify-full", &authority));
    refused(full, "certificate");
    // Of no authority that the system knows, and not of another either.
    refused(connect(&schema, "localhost", &with("verify-full", "system")), "certificate");
}

#[test]
fn another_authority_is_refused() {
    let Some((schema, authority)) = fresh("TLS with another authority") else { return };
    // The server's own certificate is trusted as itself, but the authority's key is not the server's.
    let own = authority.replace("authority.pem", "server.pem");
    assert_eq!(
        connect(&schema, "localhost", &format!("sslmode=verify-full&sslrootcert={own}")),
        Ok(true)
    );
    let other = std::env::temp_dir().join(format!("{}.pem", schema.name));
    std::fs::write(&other, OTHER).unwrap();
    let parameters = format!("sslmode=verify-ca&sslrootcert={}", other.display());
    let verified = connect(&schema, "localhost", &parameters);
    // As in libpq, giving an authority asks for it.
    let required = connect(&schema, "localhost", &parameters.replace("verify-ca", "require"));
    std::fs::remove_file(&other).unwrap();
    refused(verified, "certificate");
    refused(required, "certificate");
}

#[test]
fn files_that_are_not_there_are_named() {
    let Some((schema, _)) = fresh("TLS with missing files") else { return };
    let dsn = format!("{}&sslmode=verify-ca&sslrootcert=/no/such.pem", schema.dsn);
    let error = error(PostgresStore::connect(&dsn, schema.options()));
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("/no/such.pem"), "{error}");
}

/// An authority that has signed nothing here.
const OTHER: &str = "-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIUFpOLAZWNA0ZnfC/JLQ1S/oj1FVowCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNc29tZWJvZHkgZWxzZTAgFw0yNjExMjkxNjU3MTBaGA8yMTI2
MTEwNTE2NTcxMFowGDEWMBQGA1UEAwwNc29tZWJvZHkgZWxzZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABAW9rfeAxMy0COLz7QGYrbTgEz3azkA35zTA0sfYR45W
6IcyCDnOtFGlCsGmhyZQTmp5HACj6tgKMozKjhNPH9CjUzBRMB0GA1UdDgQWBBQa
G3cNqYYBLEhzy2TQH2EJ7oMU/DAfBgNVHSMEGDAWgBQaG3cNqYYBLEhzy2TQH2EJ
7oMU/DAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDsu3wJklp5
Zd5qyuWhFbvcTGI4p3C1/mUmL0vsHA0i0AIgC5hMLxgFR1n/a1mpvhBcYmh5TfLe
nRCQbGFr9OCLuFU=
-----END CERTIFICATE-----";
