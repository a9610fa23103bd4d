//! The arguments of a run: what `--arg` and `--args-json` give, held against what the task takes.

use std::collections::BTreeMap;
use std::fmt;

use chongming_core::{Value, integer_beyond_64_bits};
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::error::CliError;

/// The value of each parameter, by name.
pub(crate) type Arguments = BTreeMap<String, Value>;

/// What a task says about one of its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted<'a> {
    /// The name.
    pub(crate) name: &'a str,
    /// The value when none is given; without one, a value must be given.
    pub(crate) default: Option<&'a Value>,
}

/// What the command line gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// By `--arg`, as text.
    pub(crate) pairs: Vec<(String, String)>,
    /// By `--args-json`.
    pub(crate) json: Option<String>,
}

impl Given {
    /// The pairs of `--args-json`.
    pub(crate) fn object(&self) -> Result<Vec<(String, Value)>, CliError> {
        self.json.as_deref().map_or(Ok(Vec::new()), parse_json)
    }

    /// All that is given, `--arg` as text.
    pub(crate) fn as_text(&self) -> Result<Vec<(String, Value)>, CliError> {
        let pairs = self.pairs.iter().map(|(name, text)| (name.clone(), text.as_str().into()));
        Ok(pairs.chain(self.object()?).collect())
    }
}

/// Splits `name=value` at its first `=`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Reads the object of `--args-json`. A name that stands in it twice is an error: JSON readers
/// differ in which one they take.
pub(crate) fn parse_json(text: &str) -> Result<Vec<(String, Value)>, CliError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let pairs = reader.deserialize_map(Pairs).and_then(|pairs| reader.end().map(|()| pairs));
    let pairs = pairs.map_err(|error| {
        CliError::new(format!("--args-json is not a JSON object: {error}"))
            .hint("write it as --args-json '{\"name\": \"value\"}'")
    })?;
    check_integers(text).map_err(|error| CliError::new(format!("--args-json: {error}")))?;
    Ok(pairs)
}

/// Reads a JSON value; an error says why it is none, or none that keeps its digits.
pub(crate) fn parse_value(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check_integers(text).map(|()| value)
}

/// The value of `--arg` for a Rust function: JSON if it is that, else the text itself.
pub(crate) fn json_or_text(name: &str, text: &str) -> Result<Value, CliError> {
    match serde_json::from_str(text) {
        Ok(value) => {
            check_integers(text).map_err(|why| CliError::new(format!("--arg {name}: {why}")))?;
            Ok(value)
        }
        Err(_) => Ok(text.into()),
    }
}

/// Arguments of a task that does not say which ones it takes.
pub(crate) fn once_each(
    given: impl IntoIterator<Item = (String, Value)>,
) -> Result<Arguments, CliError> {
    let mut arguments = Arguments::new();
    for (name, value) in given {
        if arguments.contains_key(&name) {
            return Err(CliError::new(format!("argument `{name}` is given twice"))
                .hint("give each argument once, by --arg or in --args-json"));
        }
        arguments.insert(name, value);
    }
    Ok(arguments)
}

/// A larger integer would lose its last digits (spec 4).
fn check_integers(json: &str) -> Result<(), String> {
    match integer_beyond_64_bits(json) {
        Some(number) => Err(format!(
            "the integer {number} has more than 64 bits; write it as a string, or as a float such as 1e30"
        )),
        None => Ok(()),
    }
}

/// Reads an object as the pairs that it was written as.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// Gives every parameter of `task` its value: one that was given, or its default.
pub(crate) fn resolve<'a>(
    task: &str,
    accepted: impl IntoIterator<Item = Accepted<'a>>,
    given: impl IntoIterator<Item = (String, Value)>,
) -> Result<Arguments, CliError> {
    let accepted: Vec<Accepted<'a>> = accepted.into_iter().collect();
    let given: Vec<(String, Value)> = given.into_iter().collect();
    let is_known = |name: &str| accepted.iter().any(|param| param.name == name);
    if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) {
        return Err(CliError::new(format!("task `{task}` has no parameter `{name}`"))
            .hint_nearest(name, "parameters", accepted.iter().map(|param| param.name)));
    }
    let mut arguments = once_each(given)?;
    let mut missing = Vec::new();
    for param in accepted {
        match param.default {
            _ if arguments.contains_key(param.name) => {}
            Some(default) => {
                arguments.insert(param.name.to_owned(), default.clone());
            }
            None => missing.push(param.name),
        }
    }
    if missing.is_empty() {
        return Ok(arguments);
    }
    let error = CliError::new(format!("task `{task}` needs {}", list(&missing)));
    Err(missing.iter().fold(error, |error, name| error.hint(format!("add --arg {name}=VALUE"))))
}

/// The text of a value in a command's arguments: a string as it is, anything else as compact JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::List(_)
        | Value::Map(_) => value.to_string(),
    }
}

/// Is it text that no program can be given? In anything else JSON spells a NUL.
pub(crate) fn has_nul(value: &Value) -> bool {
    matches!(value, Value::String(text) if text.contains('\0'))
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.len() {
        1 => format!("the argument {}", quoted.concat()),
        _ => format!("the arguments {}", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolved(pairs: &[&str], json: Option<&str>) -> Result<Arguments, CliError> {
        let today = Value::from("today");
        let accepted = [
            Accepted { name: "tenant", default: None },
            Accepted { name: "day", default: Some(&today) },
        ];
        let mut given: Vec<(String, Value)> = Vec::new();
        for pair in pairs {
            let (name, value) = parse_pair(pair).map_err(CliError::new)?;
            given.push((name, Value::from(value)));
        }
        given.extend(json.map_or(Ok(Vec::new()), parse_json)?);
        resolve("sync", accepted, given)
    }

    #[test]
    fn given_values_beat_defaults() {
        let check = |pairs: &[&str], json, wanted: serde_json::Value| {
            assert_eq!(json!(resolved(pairs, json).unwrap()), wanted);
        };
        check(&["tenant=A"], None, json!({"tenant": "A", "day": "today"}));
        check(&["tenant=a=b=c", "day="], None, json!({"tenant": "a=b=c", "day": ""}));
        check(
            &["day=x"],
            Some(r#"{"tenant": 18446744073709551615}"#),
            json!({"tenant": u64::MAX, "day": "x"}),
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (pairs, json, words) in [
            (&["tennant=A"][..], None, &["sync", "tennant"][..]),
            (&[], None, &["sync", "`tenant`"]),
            (&["tenant=A", "tenant=B"], None, &["tenant", "twice"]),
            (&["tenant=A"], Some(r#"{"tenant": 1}"#), &["tenant", "twice"]),
            (&[], Some(r#"{"tenant": 1, "tenant": 2}"#), &["tenant", "twice"]),
            (&[], Some("[1]"), &["--args-json", "object"]),
            (&[], Some("{"), &["--args-json"]),
            (&[], Some("{} x"), &["--args-json"]),
            (
                &[],
                Some(r#"{"tenant": [18446744073709551616]}"#),
                &["--args-json", "18446744073709551616", "64 bits"],
            ),
            (&["=A"], None, &["NAME=VALUE"]),
            (&["tenant"], None, &["NAME=VALUE"]),
        ] {
            let error = resolved(pairs, json).unwrap_err();
            for word in words {
                assert!(error.message.contains(word), "{pairs:?} {json:?}: {error}");
            }
        }
        assert_eq!(resolved(&["tennant=A"], None).unwrap_err().hints, ["did you mean `tenant`?"]);
    }

    #[test]
    fn only_strings_stand_bare_in_a_command() {
        for (value, shown) in [
            (json!("a b"), "a b"),
            (json!(""), ""),
            (json!(3), "3"),
            (json!(null), "null"),
            (json!({"a": [1, "x"]}), r#"{"a":[1,"x"]}"#),
        ] {
            let value: Value = serde_json::from_value(value).unwrap();
            assert_eq!(text(&value), shown);
        }
    }
}
