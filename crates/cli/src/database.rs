//! Which database `--db` names, and how its address is shown without its password.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::error::CliError;

/// The database that a command works on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A Postgres server: the whole connection string, password included.
    Postgres(String),
}

impl Database {
    /// Reads the value of `--db`. This is no parser for clap, whose messages repeat the value.
    pub(crate) fn parse(value: OsString) -> Result<Self, CliError> {
        let Some(text) = value.to_str() else {
            return Ok(Self::Sqlite(PathBuf::from(value)));
        };
        if text.is_empty() {
            return Err(CliError::new("--db is empty, or CHONGMING_DB where there is no --db")
                .hint("give the path of a database file or a postgresql:// address"));
        }
        if text.contains('\0') {
            return Err(CliError::new("--db has a NUL character"));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme {
                "postgres" | "postgresql" => Ok(Self::Postgres(text.to_owned())),
                _ => Err(CliError::new(format!("--db has the unknown scheme `{scheme}://`"))
                    .hint("give the path of a database file or a postgresql:// address")),
            };
        }
        // libpq's other form; as a path it would be shown, with its password, in messages.
        if ["host=", "dbname=", "password="].iter().any(|key| text.contains(key)) {
            return Err(CliError::new("--db is neither a path nor a postgresql:// address")
                .hint("write the connection string as postgresql://user@host:5432/database"));
        }
        Ok(Self::Sqlite(PathBuf::from(value)))
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(address) => f.write_str(&redact(address)),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

/// Replaces the password of a Postgres address in a text by `***`.
///
/// A password may hold any character, also a space or an `@` that should have been escaped, so all
/// from the first colon to the *last* `@` goes: rather too much than a letter of it shown.
pub(crate) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = split_after_scheme(rest) {
        out.push_str(before);
        rest = after;
        if let Some((user_and_password, host)) = after.rsplit_once('@') {
            if let Some((user, _)) = user_and_password.split_once(':') {
                out.push_str(user);
                out.push_str(":***");
            } else {
                out.push_str(user_and_password);
            }
            out.push('@');
            rest = host;
        }
        while let Some((before, after)) = split_after(rest, "password=") {
            out.push_str(before);
            out.push_str("***");
            rest = after
                .find(|c: char| c == '&' || c.is_whitespace())
                .and_then(|end| after.get(end..))
                .unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

fn split_after_scheme(text: &str) -> Option<(&str, &str)> {
    match (split_after(text, "postgresql://"), split_after(text, "postgres://")) {
        (Some(a), Some(b)) => Some(if a.0.len() < b.0.len() { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn split_after<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    text.find(mark).and_then(|at| text.split_at_checked(at + mark.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_a_postgres_address() {
        let parse = |text: &str| Database::parse(OsString::from(text));
        assert_eq!(parse("tasks.db"), Ok(Database::Sqlite("tasks.db".into())));
        assert_eq!(parse("C:\\x.db"), Ok(Database::Sqlite("C:\\x.db".into())));
        let address = "postgresql://me:secret@host:5432/db";
        assert_eq!(parse(address), Ok(Database::Postgres(address.to_owned())));
        for bad in ["", "mysql://x", "host=h password=secret", "a\0b"] {
            let error = parse(bad).unwrap_err();
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgresql://me:secret@h/db", "postgresql://me:***@h/db"),
            ("postgres://me:se@cr:et/x@h/db", "postgres://me:***@h/db"),
            ("'postgresql://me:se cret@h/db' failed", "'postgresql://me:***@h/db' failed"),
            ("postgresql://me@h:5432/db", "postgresql://me@h:5432/db"),
            ("postgresql://h:5432/db", "postgresql://h:5432/db"),
            (
                "postgresql://h/db?user=me&password=secret&x=1",
                "postgresql://h/db?user=me&password=***&x=1",
            ),
            ("tasks.db is not there", "tasks.db is not there"),
        ] {
            assert_eq!(redact(text), shown);
        }
        let database = Database::Postgres("postgresql://me:secret@h/db".to_owned());
        assert!(!format!("{database} {database:?}").contains("secret"));
    }
}
