//! A page of names and values, a line each.

use super::escape::visible_lines;

/// The names padded to one width; the further lines of a value stand under its first.
pub(crate) fn lines(fields: &[(&str, String)]) -> Vec<String> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in fields {
        let value = visible_lines(value);
        let mut name = *name;
        // `lines` gives nothing at all for an empty text.
        for line in value.lines().chain(value.is_empty().then_some("")) {
            lines.push(format!("{name:width$}  {line}").trim_end().to_owned());
            name = "";
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_align_and_stay_harmless() {
        let fields = [
            ("name", "A-同步".to_owned()),
            ("failure", "a\n\x1b[31mb".to_owned()),
            ("x", String::new()),
        ];
        assert_eq!(lines(&fields), ["name     A-同步", "failure  a", "         \\x1b[31mb", "x"]);
    }
}
