//! How much room text takes on a terminal, and how it is cut to fit.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The sign that something was cut off.
const CUT: &str = "…";

/// The columns that a text takes: 2 for CJK and emoji, 0 for combining marks.
pub(crate) fn width(text: &str) -> usize {
    // Most text is ASCII, where looking at the bytes is enough.
    if text.is_ascii() {
        text.len()
    } else {
        text.graphemes(true).map(UnicodeWidthStr::width).sum()
    }
}

/// Appends the text, cut to `columns` with a `…` at the end if it is longer, and returns the
/// columns it took. What a reader sees as one character is never cut in two.
pub(crate) fn push_cut(out: &mut String, text: &str, columns: usize) -> usize {
    let whole = width(text);
    if whole <= columns {
        out.push_str(text);
        return whole;
    }
    let Some(room) = columns.checked_sub(CUT.width()) else { return 0 };
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let next = used + grapheme.width();
        if next > room {
            break;
        }
        out.push_str(grapheme);
        used = next;
    }
    out.push_str(CUT);
    used + CUT.width()
}

/// The text, cut to `columns` as by [`push_cut`].
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let mut out = String::new();
    push_cut(&mut out, text, columns);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_and_combined_characters_count_as_shown() {
        for (text, columns) in
            [("abc", 3), ("同步", 4), ("🎉", 2), ("e\u{301}", 1), ("👩‍💻", 2), ("", 0)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn a_cut_never_splits_a_character_nor_exceeds_its_room() {
        for (text, columns, shown) in [
            ("abcdef", 6, "abcdef"),
            ("abcdef", 4, "abc…"),
            ("同步同步", 4, "同…"),
            ("👩‍💻👩‍💻", 3, "👩‍💻…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, columns), shown);
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "\\PC{0,30}", columns in 0_usize..20) {
            prop_assert!(width(&cut(&text, columns)) <= columns);
        }
    }
}
