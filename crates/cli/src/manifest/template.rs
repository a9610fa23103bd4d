//! Text with `{placeholders}`, as in a command's arguments.
//!
//! One pass: what is filled in is never looked at again, so a value that holds braces, quotes or
//! shell syntax stays what it is. `{{` and `}}` are literal braces.

use std::fmt;

/// A text with placeholders, read and found well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Placeholder(Placeholder),
}

/// What stands between two braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// `{name}`: the value of a parameter.
    Parameter(String),
    /// `{node.value}`: the result of an upstream node.
    NodeValue(String),
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => write!(f, "{{{name}}}"),
            Self::NodeValue(node) => write!(f, "{{{node}.value}}"),
        }
    }
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// A `{` without its `}`.
    Unclosed,
    /// A `}` without its `{`.
    Unopened,
    /// The text between braces is neither a parameter nor `node.value`.
    NotAName(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed => f.write_str("`{` has no `}`; write `{{` for a literal brace"),
            Self::Unopened => f.write_str("`}` has no `{`; write `}}` for a literal brace"),
            Self::NotAName(text) => write!(
                f,
                "`{{{text}}}` is no placeholder: write {{name}} for a parameter, or `{{{{` and `}}}}` for literal braces"
            ),
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a text.
    pub(crate) fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut chars = source.chars().peekable();
        while let Some(c) = chars.next() {
            let doubled = chars.peek() == Some(&c);
            match c {
                '{' | '}' if doubled => {
                    chars.next();
                    literal.push(c);
                }
                '{' => {
                    let name = until_brace(&mut chars).ok_or(TemplateError::Unclosed)?;
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Placeholder(placeholder(name)?));
                }
                '}' => return Err(TemplateError::Unopened),
                _ => literal.push(c),
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self { source: source.to_owned(), pieces })
    }

    /// The text as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The placeholders in order.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Placeholder(placeholder) => Some(placeholder),
        })
    }

    /// The one placeholder that is the whole text, if it is so: its value then need not become text.
    pub(crate) fn whole(&self) -> Option<&Placeholder> {
        match self.pieces.as_slice() {
            [Piece::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// The text with every placeholder filled in; the first one that `value` cannot fill is
    /// returned as the error.
    pub(crate) fn fill<V: AsRef<str>>(
        &self,
        mut value: impl FnMut(&Placeholder) -> Option<V>,
    ) -> Result<String, &Placeholder> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Placeholder(placeholder) => {
                    out.push_str(value(placeholder).ok_or(placeholder)?.as_ref());
                }
            }
        }
        Ok(out)
    }
}

/// Whether a text can stand between braces as the name of a parameter: a letter or `_`, then
/// letters, digits, `_` and `-`.
pub(crate) fn is_parameter_name(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// The text up to the next `}`, which is taken; none when another `{` or the end comes first.
fn until_brace(chars: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut name = String::new();
    for c in chars {
        match c {
            '}' => return Some(name),
            '{' => return None,
            _ => name.push(c),
        }
    }
    None
}

fn placeholder(text: String) -> Result<Placeholder, TemplateError> {
    if is_parameter_name(&text) {
        return Ok(Placeholder::Parameter(text));
    }
    match text.strip_suffix(".value") {
        Some(node) if !node.is_empty() => Ok(Placeholder::NodeValue(node.to_owned())),
        _ => Err(TemplateError::NotAName(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fill(template: &str, value: &str) -> String {
        Template::parse(template).unwrap().fill(|_| Some(value)).unwrap()
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        for (template, value, text) in [
            ("{x}", "a b", "a b"),
            ("pre{x}post", "$(touch pwned)", "pre$(touch pwned)post"),
            ("{x}{x}", "{x}", "{x}{x}"),
            ("{{x}}", "v", "{x}"),
            ("{{{x}}}", "v", "{v}"),
            ("}}{{", "v", "}{"),
            ("awk '{{print $1}}'", "v", "awk '{print $1}'"),
            ("{fetch.value}", "v", "v"),
            ("{größe-2}", "ü漢字🎉", "ü漢字🎉"),
            ("", "v", ""),
        ] {
            assert_eq!(fill(template, value), text, "{template}");
        }
    }

    #[test]
    fn stray_braces_and_odd_names_are_errors() {
        for template in ["{", "}", "{x", "x}", "{{x}", "{x}}", "{x{y}}", "a{"] {
            let error = Template::parse(template).unwrap_err();
            assert!(error.to_string().contains("literal brace"), "{template}: {error}");
        }
        for template in ["{}", "{ x }", "{1x}", "{a b}", "{.value}", "{x.name}"] {
            let error = Template::parse(template).unwrap_err();
            assert!(matches!(error, TemplateError::NotAName(_)), "{template}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_named() {
        let template = Template::parse("{a}-{b}").unwrap();
        let missing = template.fill(|placeholder| {
            (*placeholder == Placeholder::Parameter("a".to_owned())).then_some("v")
        });
        assert_eq!(missing, Err(&Placeholder::Parameter("b".to_owned())));
    }

    #[test]
    fn a_template_that_is_one_placeholder_is_known() {
        let whole = |text: &str| Template::parse(text).unwrap().whole().cloned();
        assert_eq!(whole("{up.value}"), Some(Placeholder::NodeValue("up".to_owned())));
        assert_eq!(whole("{x}"), Some(Placeholder::Parameter("x".to_owned())));
        assert_eq!(whole("{x} "), None);
    }

    proptest! {
        #[test]
        fn doubled_braces_give_any_text_back(text in "\\PC{0,40}") {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(fill(&escaped, "never used"), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}a-c. ]{0,20}") {
            let _ = Template::parse(&text);
        }
    }
}
