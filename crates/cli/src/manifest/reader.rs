//! Reads typed values out of parsed TOML, and reports everything that is wrong on the way.
//!
//! The readers return `None` after they have reported a problem. A manifest with a problem is
//! refused as a whole, so no caller has to tell "absent" from "wrong".

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use chongming_core::{Value, check_name, check_text};
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::problem::Problems;
use super::template::Template;
use crate::duration;
use crate::nearest::nearest;

/// A value of the file with its place and its key.
#[derive(Clone, Debug)]
pub(super) struct Node<'d, 't> {
    value: &'d DeValue<'t>,
    span: Range<usize>,
    key: String,
    problems: &'d Problems<'t>,
}

impl<'d, 't> Node<'d, 't> {
    pub(super) fn root(table: &'d Spanned<DeValue<'t>>, problems: &'d Problems<'t>) -> Self {
        Self { value: table.get_ref(), span: table.span(), key: String::new(), problems }
    }

    /// Reports a problem with this value.
    pub(super) fn problem(&self, message: impl Into<String>) {
        self.problems.add(self.span.clone(), &self.key, message);
    }

    fn mistyped<T>(&self, wanted: &str) -> Option<T> {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.problem(format!("must be {wanted}, not {found}"));
        None
    }

    pub(super) fn string(&self) -> Option<&'d str> {
        match self.value.as_str() {
            Some(text) => Some(text),
            None => self.mistyped("a string in quotes"),
        }
    }

    /// A string without NUL, which neither a program nor a file system can be given.
    pub(super) fn os_text(&self) -> Option<&'d str> {
        let text = self.string()?;
        if text.contains('\0') {
            self.problem("has a NUL character; remove it");
            return None;
        }
        Some(text)
    }

    pub(super) fn name(&self) -> Option<String> {
        let name = self.string()?;
        check_name("the name", name)
            .map_err(|why| self.problem(format!("is wrong: {why}")))
            .ok()?;
        Some(name.to_owned())
    }

    /// A tag: free text, but not nothing.
    pub(super) fn tag(&self) -> Option<String> {
        let tag = self.string()?;
        if tag.is_empty() {
            self.problem("is empty; remove it");
            return None;
        }
        check_text("the tag", tag).map_err(|why| self.problem(format!("is wrong: {why}"))).ok()?;
        Some(tag.to_owned())
    }

    pub(super) fn template(&self) -> Option<Template> {
        let text = self.os_text()?;
        Template::parse(text).map_err(|error| self.problem(format!("is no template: {error}"))).ok()
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        let DeValue::String(text) = self.value else {
            return self.mistyped("a duration in quotes, such as \"30s\"");
        };
        duration::parse(text).map_err(|error| self.problem(format!("is wrong: {error}"))).ok()
    }

    /// A duration above zero.
    pub(super) fn positive_duration(&self) -> Option<Duration> {
        let duration = self.duration()?;
        if duration.is_zero() {
            self.problem("must be longer than zero; leave it out for no limit");
            return None;
        }
        Some(duration)
    }

    /// An integer in the range of `T`, at least `least`.
    pub(super) fn integer<T>(&self, least: T) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + std::fmt::Display,
    {
        let DeValue::Integer(integer) = self.value else { return self.mistyped("an integer") };
        match wide(integer).map(T::try_from) {
            Some(Ok(number)) if number >= least => Some(number),
            _ => {
                self.problem(format!(
                    "is {integer}; it must be an integer of at least {least} that is not too large"
                ));
                None
            }
        }
    }

    /// A finite number.
    pub(super) fn number(&self) -> Option<f64> {
        let number = match self.value {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            // Exactness does not matter for a factor or a share.
            DeValue::Integer(integer) => wide(integer).map(|integer| integer as f64),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return self.mistyped("a number"),
        };
        match number {
            Some(number) if number.is_finite() => Some(number),
            _ => {
                self.problem("must be a finite number");
                None
            }
        }
    }

    /// Every element read by `read`.
    pub(super) fn list<T>(&self, read: impl Fn(&Self) -> Option<T>, what: &str) -> Option<Vec<T>> {
        let DeValue::Array(array) = self.value else { return self.mistyped(what) };
        let read: Vec<Option<T>> = array
            .iter()
            .enumerate()
            .map(|(index, element)| {
                read(&Self {
                    value: element.get_ref(),
                    span: element.span(),
                    key: format!("{}[{index}]", self.key),
                    problems: self.problems,
                })
            })
            .collect();
        read.into_iter().collect()
    }

    /// Any value that JSON can express.
    pub(super) fn any(&self) -> Option<Value> {
        match self.value {
            DeValue::String(text) => Some(Value::String(text.to_string())),
            DeValue::Boolean(boolean) => Some(Value::Bool(*boolean)),
            DeValue::Float(_) => self.number().map(Value::Float),
            DeValue::Integer(integer) => {
                let wide = wide(integer);
                let value = wide.and_then(|wide| {
                    i64::try_from(wide)
                        .map(Value::from)
                        .or(u64::try_from(wide).map(Value::from))
                        .ok()
                });
                if value.is_none() {
                    self.problem("does not fit into 64 bits; write it as a string in quotes");
                }
                value
            }
            DeValue::Datetime(_) => {
                self.problem("is a date, which JSON does not have; write it as a string in quotes");
                None
            }
            DeValue::Array(_) => self.list(Self::any, "an array").map(Value::List),
            DeValue::Table(_) => {
                let entries = self.entries()?;
                let read = entries.map(|(key, node)| Some((key.text.to_owned(), node.any()?)));
                read.collect::<Option<_>>().map(Value::Map)
            }
        }
    }

    /// The entries of a table whose keys are the user's own, in the order of the file.
    pub(super) fn entries(
        &self,
    ) -> Option<impl Iterator<Item = (Key<'d, 't>, Self)> + use<'d, 't>> {
        let DeValue::Table(table) = self.value else { return self.mistyped("a table") };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let (parent, problems) = (self.key.clone(), self.problems);
        Some(entries.into_iter().map(move |(key, value)| {
            let path = join(&parent, key.get_ref());
            let node =
                Self { value: value.get_ref(), span: value.span(), key: path.clone(), problems };
            (Key { text: key.get_ref(), span: key.span(), path, problems }, node)
        }))
    }

    /// A table whose keys are ours.
    pub(super) fn fields(&self, what: &str) -> Option<Fields<'d, 't>> {
        let DeValue::Table(table) = self.value else { return self.mistyped(what) };
        Some(Fields { table, node: self.clone(), asked: RefCell::default() })
    }
}

/// A key that the user chose.
#[derive(Clone, Debug)]
pub(super) struct Key<'d, 't> {
    pub(super) text: &'d str,
    span: Range<usize>,
    path: String,
    problems: &'d Problems<'t>,
}

impl Key<'_, '_> {
    pub(super) fn problem(&self, message: impl Into<String>) {
        self.problems.add(self.span.clone(), &self.path, message);
    }

    pub(super) fn name(&self) -> Option<String> {
        check_name("the name", self.text)
            .map_err(|why| self.problem(format!("is a bad name: {why}")))
            .ok()?;
        Some(self.text.to_owned())
    }
}

/// A table whose keys are ours: those that were never asked for are unknown.
#[derive(Debug)]
pub(super) struct Fields<'d, 't> {
    table: &'d DeTable<'t>,
    pub(super) node: Node<'d, 't>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'d, 't> Fields<'d, 't> {
    /// The value of a key, if it is there.
    pub(super) fn get(&self, key: &'static str) -> Option<Node<'d, 't>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key).map(|value| Node {
            value: value.get_ref(),
            span: value.span(),
            key: join(&self.node.key, key),
            problems: self.node.problems,
        })
    }

    /// The value of a key read by `read`, if it is there and right.
    pub(super) fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Node<'d, 't>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).and_then(|node| read(&node))
    }

    /// Like [`Fields::read`] for a key that must be there.
    pub(super) fn require<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Node<'d, 't>) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(key);
        if node.is_none() {
            self.node.problem(format!("has no `{key}`, which is needed"));
        }
        node.and_then(|node| read(&node))
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn finish(self) {
        let asked = self.asked.into_inner();
        let unknown = |key: &Spanned<DeString<'t>>| !asked.contains(&key.get_ref().as_ref());
        for key in self.table.keys().filter(|key| unknown(key)) {
            let help = match nearest(key.get_ref(), asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", asked.join(", ")),
            };
            let path = join(&self.node.key, key.get_ref());
            self.node.problems.add(key.span(), &path, format!("is an unknown key; {help}"));
        }
    }
}

/// `parent.key`, the key in quotes where TOML would need them.
fn join(parent: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if parent.is_empty() { key } else { format!("{parent}.{key}") }
}

fn wide(integer: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}
