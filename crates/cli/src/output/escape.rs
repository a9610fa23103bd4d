//! Text from outside made harmless: what a terminal would obey instead of show becomes an escape.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text on one line: control characters, line ends and marks that reorder text become visible
/// escapes such as `\n`, `\x1b` or `\u{202e}`. All else, emoji and CJK included, stays as it is.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Like [`visible`], but keeps line ends and tabs: for text of several lines.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let must_escape = |c: char| is_hostile(c) && !keep(c);
    if !text.contains(must_escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !must_escape(c) {
            out.push(c);
        } else if c.is_ascii() && !matches!(c, '\n' | '\r' | '\t') {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        } else {
            out.extend(c.escape_default());
        }
    }
    Cow::Owned(out)
}

fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}' // line and paragraph separators
            | '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // reordering
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' // invisible
            | '\u{e0000}'..='\u{e007f}' // invisible tags
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        for (text, shown) in [
            ("evil\x1b[31m\x1b]0;t\x07\nnext", "evil\\x1b[31m\\x1b]0;t\\x07\\nnext"),
            ("a\tb\r\0\x7f", "a\\tb\\r\\x00\\x7f"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}def\u{feff}", "abc\\u{202e}def\\u{feff}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        for text in ["A-同步", "👩‍💻 ü", "C:\\tasks", ""] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
