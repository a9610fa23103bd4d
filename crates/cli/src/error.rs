//! What a failed command tells its user: a message, and hints about what to do next.

use std::fmt;
use std::io::{self, Write};

use crate::database::redact;
use crate::nearest::nearest;
use crate::output::escape::visible_lines;

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CliError {
    /// What was wrong.
    pub(crate) message: String,
    /// What to do, one line each.
    pub(crate) hints: Vec<String>,
}

impl CliError {
    /// The message says what was wrong, and with which value.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    /// A fault of this program.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(message).hint("this is a fault of the program; please report it")
    }

    /// Something cannot be done because the program was built without a feature of its.
    #[cfg(not(all(
        feature = "sqlite",
        feature = "postgres",
        feature = "process",
        feature = "pipeline"
    )))]
    pub(crate) fn without_feature(what: impl fmt::Display, feature: &str) -> Self {
        Self::new(format!("cannot {what}: this program was built without its feature `{feature}`"))
            .hint("use a program that was built with it")
    }

    /// Adds a line that says what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the candidate that `wanted` was probably meant to be, or else all of them when they are
    /// few enough to read.
    #[must_use]
    pub(crate) fn hint_nearest<'a>(
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
            0 => self.hint(format!("there are no {what}")),
            1..=20 => self.hint(format!("{what}: {}", candidates.join(", "))),
            count => self.hint(format!("there are {count} of them, none with a similar name")),
        }
    }

    /// Writes `error: …` and one `hint: …` line per hint. Control characters are shown as escapes
    /// and passwords in connection strings as `***`, wherever the text came from.
    pub(crate) fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "error: {}", visible_lines(&redact(&self.message)))?;
        for hint in &self.hints {
            writeln!(out, "hint: {}", visible_lines(&redact(hint)))?;
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
        let error = CliError::new("no database at tasks.db").hint("`run` makes one").hint("or -x");
        assert_eq!(
            printed(&error),
            "error: no database at tasks.db\nhint: `run` makes one\nhint: or -x\n"
        );
    }

    #[test]
    fn hostile_text_and_passwords_never_reach_the_terminal() {
        let error =
            CliError::new("no task `\x1b[31mx`").hint("asked postgresql://me:secret@host/db");
        let text = printed(&error);
        assert!(!text.contains('\x1b') && text.contains("\\x1b[31m"), "{text}");
        assert!(!text.contains("secret") && text.contains("me:***@host/db"), "{text}");
    }

    #[test]
    fn the_nearest_candidate_or_all_of_them_are_offered() {
        let hints = |wanted: &str, names: &[&str]| {
            CliError::new("x").hint_nearest(wanted, "tasks", names.iter().copied()).hints
        };
        assert_eq!(hints("snyc", &["sync", "load"]), ["did you mean `sync`?"]);
        assert_eq!(hints("zzz", &["sync", "load"]), ["tasks: sync, load"]);
        assert_eq!(hints("zzz", &[]), ["there are no tasks"]);
    }
}
