use super::*;

fn parse(text: &str) -> Parsed<Dsn> {
    Dsn::parse(text, &Options::default())
}

fn parsed(text: &str) -> Dsn {
    match parse(text) {
        Ok(dsn) => dsn,
        Err(message) => panic!("{text}: {message}"),
    }
}

#[test]
fn parts_are_where_libpq_has_them() {
    let dsn = parsed("postgresql://me:p%40ss@db.example:6000/tasks?connect_timeout=7&schema=s");
    let config = &dsn.config;
    assert_eq!(config.get_user(), Some("me"));
    assert_eq!(config.get_password(), Some("p@ss".as_bytes()));
    assert_eq!(config.get_dbname(), Some("tasks"));
    assert_eq!(config.get_ports(), [6000]);
    assert_eq!(dsn.name, "db.example:6000/tasks");
    assert_eq!(dsn.schema, "s");
    assert_eq!(dsn.connect_timeout, Duration::from_secs(7));
    assert_eq!(dsn.tls, Terms { mode: Mode::Prefer, roots: None, identity: None });
}

#[test]
fn names_of_servers() {
    for (text, name) in [
        ("postgres://h", "h:5432/"),
        ("postgresql://u@h/d", "h:5432/d"),
        ("postgresql://u@h", "h:5432/u"),
        ("postgresql://[::1]:6000/d", "[::1]:6000/d"),
        ("postgresql://a:1,b:2/d", "a:1,b:2/d"),
        ("postgresql://a,b/d?port=6000", "a:6000,b:6000/d"),
        ("postgresql:///d?host=/run/pg", "/run/pg:5432/d"),
        ("postgresql://%2Frun%2Fpg/d", "/run/pg:5432/d"),
        ("postgresql:///d?hostaddr=10.0.0.1&port=7", "10.0.0.1:7/d"),
        ("postgresql://h/a%2Fb%3F", "h:5432/a/b?"),
        ("postgresql://u:p@h@x/d", "x:5432/d"),
    ] {
        assert_eq!(parsed(text).name, name, "{text}");
    }
}

#[test]
fn passwords_may_hold_anything() {
    for password in ["", "p w", "a:b", "a@b", "%", "ü🎉", "a/b?c#d&e=f", "\u{1}"] {
        let escaped: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let dsn = parsed(&format!("postgresql://me:{escaped}@h/d"));
        assert_eq!(dsn.config.get_password(), Some(password.as_bytes()));
        assert!(password.len() < 2 || !format!("{:?}", dsn.config).contains(password));
        let dsn = parsed(&format!("postgresql://h/d?password={escaped}"));
        assert_eq!(dsn.config.get_password(), Some(password.as_bytes()));
    }
}

#[test]
fn what_cannot_be_understood_is_told_without_the_password() {
    for (text, words) in [
        ("hush", "starts with postgresql://"),
        ("mysql://me:hush@h/d", "starts with postgresql://"),
        ("postgresql://me:hu/sh@h/d", "write / as %2F"),
        ("postgresql://me:hu?sh@h/d", "write / as %2F"),
        ("postgresql://me:hush%zz@h/d", "two hexadecimal digits"),
        ("postgresql://me:hush%ff@h/d", "not in UTF-8"),
        ("postgresql://me:hush@h:port/d", "port is no number"),
        ("postgresql://me:hush@h:0/d", "port is no number"),
        ("postgresql://me:hush@h/d?sslmode=allow", "\"allow\"; give disable, prefer"),
        ("postgresql://me:hush@h/d?sslmod=require", "unknown parameter \"sslmod\""),
        ("postgresql://me:hush@h/d?sslmode", "no value"),
        ("postgresql://me:hush@h/d?connect_timeout=soon", "no number of seconds"),
        ("postgresql://me:hush@h/d?hostaddr=h", "an IP address"),
        ("postgresql://me:hush@h/d?schema=", "no name of a schema"),
        ("postgresql://me:hush@a:1,b:2,c:3/d?port=1,2", "3 hosts but 2 ports"),
        ("postgresql://me:hush@h/d?sslcert=c.pem", "both sslcert and sslkey"),
        ("postgresql://me:hush@h/d?sslmode=require&sslrootcert=system", "verify-full only"),
        ("postgresql://me:hush@h,%2Frun/d", "either sockets or hosts"),
    ] {
        let message = parse(text).err().unwrap_or_else(|| panic!("{text} was understood"));
        assert!(message.contains(words) && !message.contains("hu"), "{text}: {message}");
    }
}

#[test]
fn modes_of_tls() {
    let file = || Some(Roots::File("ca.pem".into()));
    for (parameters, mode, roots) in [
        ("", Mode::Prefer, None),
        ("sslmode=disable", Mode::Disable, None),
        ("sslmode=require", Mode::Require, None),
        ("sslmode=require&sslrootcert=ca.pem", Mode::VerifyCa, file()),
        ("sslmode=verify-ca&sslrootcert=ca.pem", Mode::VerifyCa, file()),
        ("sslmode=verify-full&sslrootcert=ca.pem", Mode::VerifyFull, file()),
        ("sslrootcert=system", Mode::VerifyFull, Some(Roots::System)),
    ] {
        let tls = parsed(&format!("postgresql://h/d?{parameters}")).tls;
        assert_eq!((tls.mode, tls.roots), (mode, roots), "{parameters}");
    }
    // A socket of this machine needs none.
    let tls = parsed("postgresql:///d?host=/run&sslmode=verify-full").tls;
    assert_eq!(tls.mode, Mode::Disable);
}
