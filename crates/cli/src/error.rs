//! What a failed command tells its user: a kind, a message, and hints about what to do next.

use std::fmt;
use std::io::{self, Write};

use crate::database::redact;
use crate::exit_codes;
use crate::nearest::nearest;
use crate::output::escape::visible_lines;

/// Whose turn it is after the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is wrong: the user corrects it.
    Usage,
    /// Something outside is wrong (a manifest, a folder, a server): the user mends it.
    User,
    /// A task, name or file that does not exist was named.
    NotFound,
    /// It was understood and could be done, but must not be: it would break a promise.
    Refused,
    /// A fault of this program.
    Internal,
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
}

impl CliError {
    /// An error of this kind; the message says what was wrong, and with which value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// See [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// See [`ErrorKind::User`].
    pub fn user(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::User, message)
    }

    /// See [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// See [`ErrorKind::Refused`].
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    /// See [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds a line that says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the candidate that `wanted` was probably meant to be, or else all of them when they are
    /// few enough to read.
    #[must_use]
    pub fn hint_nearest<'a>(
        self,
        wanted: &str,
        what: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let candidates: Vec<&str> = candidates.into_iter().collect();
        if let Some(near) = nearest(wanted, candidates.iter().copied()) {
            return self.hint(format!("did you mean `{near}`?"));
        }
        match candidates.len() {
            0 => self.hint(format!("there is no {what}")),
            1..=20 => self.hint(format!("{what}: {}", candidates.join(", "))),
            count => self.hint(format!("there are {count} of them, none with a similar name")),
        }
    }

    /// Whose turn it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do, one line each.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The code that the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage
            | ErrorKind::User
            | ErrorKind::NotFound
            | ErrorKind::Refused
            | ErrorKind::Internal => exit_codes::COMMAND_FAILED,
        }
    }

    /// Writes `error: …` and one `hint: …` line per hint. Control characters are shown as escapes
    /// and passwords in connection strings as `***`, wherever the text came from.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "error: {}", visible_lines(&redact(&self.message)))?;
        for hint in &self.hints {
            writeln!(out, "hint: {}", visible_lines(&redact(hint)))?;
        }
        if self.kind == ErrorKind::Internal {
            writeln!(out, "hint: this is a fault of the program; please report it")?;
        }
        Ok(())
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.message))
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(error: &CliError) -> String {
        let mut out = Vec::new();
        error.write_to(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_error_comes_first_and_then_its_hints() {
        let error = CliError::user("no database at tasks.db").hint("`run` makes one").hint("or -x");
        assert_eq!(
            printed(&error),
            "error: no database at tasks.db\nhint: `run` makes one\nhint: or -x\n"
        );
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn hostile_text_and_passwords_never_reach_the_terminal() {
        let error =
            CliError::not_found("no task `\x1b[31mx`").hint("asked postgresql://me:secret@host/db");
        let text = printed(&error);
        assert!(!text.contains('\x1b') && text.contains("\\x1b[31m"), "{text}");
        assert!(!text.contains("secret") && text.contains("me:***@host/db"), "{text}");
    }

    #[test]
    fn the_nearest_candidate_or_all_of_them_are_offered() {
        let hints = |wanted: &str, names: &[&str]| {
            CliError::not_found("x").hint_nearest(wanted, "tasks", names.iter().copied()).hints
        };
        assert_eq!(hints("snyc", &["sync", "load"]), ["did you mean `sync`?"]);
        assert_eq!(hints("zzz", &["sync", "load"]), ["tasks: sync, load"]);
        assert_eq!(hints("zzz", &[]), ["there is no tasks"]);
    }
}
