//! What is wrong with a manifest, and where.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// So many problems are told at once; a file with more is probably not a manifest.
const MOST_TOLD: usize = 20;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column in characters, from 1.
    pub(crate) column: usize,
    /// The key as a path (`tasks.sync.retry`), empty when the file is no TOML.
    pub(crate) key: String,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A manifest that cannot be used, with everything that is wrong with it in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestError {
    /// The file.
    pub(crate) path: PathBuf,
    /// At least one.
    pub(crate) problems: Vec<Problem>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        for (index, problem) in self.problems.iter().take(MOST_TOLD).enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{path}:{problem}")?;
        }
        match self.problems.len().saturating_sub(MOST_TOLD) {
            0 => Ok(()),
            more => write!(f, "\n{path}: and {more} more"),
        }
    }
}

impl std::error::Error for ManifestError {}

impl From<ManifestError> for CliError {
    fn from(error: ManifestError) -> Self {
        Self::new(error.to_string())
    }
}

/// Collects problems while a manifest is read.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<(usize, Problem)>>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::default() }
    }

    pub(super) fn add(&self, span: Range<usize>, key: &str, message: impl Into<String>) {
        let (line, column) = position(self.text.as_bytes(), span.start);
        let problem = Problem { line, column, key: key.to_owned(), message: message.into() };
        self.found.borrow_mut().push((span.start, problem));
    }

    /// The value, unless something was wrong.
    pub(super) fn settle<T>(self, path: &Path, value: Option<T>) -> Result<T, ManifestError> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(at, _)| *at);
        match value {
            Some(value) if found.is_empty() => Ok(value),
            _ => Err(ManifestError {
                path: path.to_owned(),
                problems: found.into_iter().map(|(_, problem)| problem).collect(),
            }),
        }
    }
}

/// The line and column of a byte, both from 1; the column in characters.
pub(super) fn position(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    let line = 1 + before.iter().filter(|b| **b == b'\n').count();
    let on_line = before.get(line_start..).unwrap_or_default();
    (line, 1 + String::from_utf8_lossy(on_line).chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "ab\nüc\n\nd";
        for (at, place) in [
            (0, (1, 1)),
            (1, (1, 2)),
            (3, (2, 1)),
            (5, (2, 2)),
            (7, (3, 1)),
            (8, (4, 1)),
            (99, (4, 2)),
        ] {
            assert_eq!(position(text.as_bytes(), at), place, "{at}");
        }
    }

    #[test]
    fn problems_are_told_in_the_order_of_the_file_and_not_without_end() {
        let problems = Problems::new("a\nb\n");
        for at in [2, 0] {
            problems.add(at..at + 1, "k", "is bad");
        }
        let error = problems.settle(Path::new("m.toml"), Some(())).unwrap_err();
        assert_eq!(error.to_string(), "m.toml:1:1: `k` is bad\nm.toml:2:1: `k` is bad");

        let problems = Problems::new("a");
        (0..25).for_each(|_| problems.add(0..1, "k", "is bad"));
        let error = problems.settle(Path::new("m.toml"), Some(())).unwrap_err();
        assert!(error.to_string().ends_with("m.toml: and 5 more"));
    }
}
