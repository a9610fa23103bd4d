//! Text rules shared by every name the product stores (spec 10 and 16).

use std::fmt;
use std::sync::Arc;

/// Cheap-to-clone text: a task's strings are shared by its snapshot, its journal entries and its handles.
pub type Text = Arc<str>;

/// Longest id or name, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// A text that breaks the rules of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidText {
    field: &'static str,
    shown: String,
    problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Empty,
    TooLong(usize),
    Control(char),
    Nul,
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        match self.problem {
            Problem::Empty => write!(f, "{field} is empty; give it at least one character"),
            Problem::TooLong(bytes) => write!(
                f,
                "{field} \"{}…\" has {bytes} bytes; at most {MAX_NAME_BYTES} are allowed",
                self.shown
            ),
            Problem::Control(found) => write!(
                f,
                "{field} \"{}\" contains the control character U+{:04X}; remove it",
                self.shown,
                u32::from(found)
            ),
            Problem::Nul => {
                write!(f, "{field} \"{}\" contains a NUL character; remove it", self.shown)
            }
        }
    }
}

impl std::error::Error for InvalidText {}

impl InvalidText {
    fn new(field: &'static str, text: &str, problem: Problem) -> Self {
        let shown = text.chars().take(40).flat_map(char::escape_debug).collect();
        Self { field, shown, problem }
    }
}

/// Checks an id or a name: not empty, at most [`MAX_NAME_BYTES`], no control characters.
///
/// # Errors
/// [`InvalidText`] names the field, the text and what is wrong with it.
pub fn check_name(field: &'static str, text: &str) -> Result<(), InvalidText> {
    if text.is_empty() {
        return Err(InvalidText::new(field, text, Problem::Empty));
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidText::new(field, text, Problem::TooLong(text.len())));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(found) => Err(InvalidText::new(field, text, Problem::Control(found))),
        None => Ok(()),
    }
}

/// Checks a free text that is stored as a key or shown to people (label, tag, bucket key, owner): no NUL.
///
/// # Errors
/// [`InvalidText`] names the field, the text and what is wrong with it.
pub fn check_text(field: &'static str, text: &str) -> Result<(), InvalidText> {
    if text.contains('\0') {
        return Err(InvalidText::new(field, text, Problem::Nul));
    }
    Ok(())
}

/// A reason or message as it is stored: NUL becomes U+FFFD (spec 10).
#[must_use]
pub fn clean(text: &str) -> Text {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_for_length_and_control_characters() {
        assert!(check_name("task id", "demo-1 漢字 🎉").is_ok());
        assert!(check_name("task id", &"x".repeat(255)).is_ok());
        for bad in ["", "bad\nid", "nul\0", "esc\u{1b}", "\u{85}", &"x".repeat(256)] {
            assert!(check_name("task id", bad).is_err(), "{bad:?}");
        }
        let message = check_name("task id", "bad\nid").unwrap_err().to_string();
        assert_eq!(
            message,
            "task id \"bad\\nid\" contains the control character U+000A; remove it"
        );
    }

    #[test]
    fn nul_is_refused_in_text_and_replaced_in_reasons() {
        assert!(check_text("label", "evil\u{1b}[31m").is_ok());
        assert!(check_text("label", "a\0b").is_err());
        assert_eq!(&*clean("a\0b"), "a\u{FFFD}b");
    }
}
