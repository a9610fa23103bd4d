//! Arguments and results: JSON values (spec 4).

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Deepest nesting of lists and maps that a value may have.
pub const MAX_DEPTH: usize = 128;

/// A JSON value that keeps 64-bit integers whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number. NaN and infinities are not JSON: see [`Value::check`].
    Float(f64),
    /// A string; may hold NUL.
    String(String),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Map(BTreeMap<String, Value>),
}

/// A value that JSON cannot express, or one of another shape than asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue(String);

impl InvalidValue {
    /// With this explanation.
    pub fn new(explanation: impl Into<String>) -> Self {
        Self(explanation.into())
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

impl Value {
    /// Can JSON express it: only finite numbers, nested at most [`MAX_DEPTH`] deep?
    ///
    /// # Errors
    /// [`InvalidValue`] says what is in the way.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let mut level: Vec<&Self> = vec![self];
        let mut depth = 0;
        while !level.is_empty() {
            let mut below = Vec::new();
            for value in level {
                match value {
                    Self::Float(x) if !x.is_finite() => {
                        return Err(InvalidValue(format!("the number {x} has no JSON form")));
                    }
                    Self::List(items) => below.extend(items.iter().chain([&Self::Null])),
                    Self::Map(map) => below.extend(map.values().chain([&Self::Null])),
                    Self::Null
                    | Self::Bool(_)
                    | Self::Int(_)
                    | Self::UInt(_)
                    | Self::Float(_)
                    | Self::String(_) => {}
                }
            }
            depth += usize::from(!below.is_empty());
            if depth > MAX_DEPTH {
                return Err(InvalidValue(format!(
                    "it is nested more than {MAX_DEPTH} levels deep"
                )));
            }
            level = below;
        }
        Ok(())
    }

    /// The kind of value, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::UInt(_) => "an integer",
            Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    fn mismatch<T>(&self, wanted: &str) -> Result<T, InvalidValue> {
        Err(InvalidValue(format!("expected {wanted}, found {}", self.kind())))
    }
}

/// Compact JSON text.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::UInt(n) => write!(f, "{n}"),
            Self::Float(x) if x.is_finite() => write!(f, "{x:?}"),
            Self::Float(_) => f.write_str("null"),
            Self::String(s) => write_string(f, s),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Map(map) => {
                f.write_str("{")?;
                for (i, (key, value)) in map.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    write_string(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// What a task may return.
pub trait IntoValue {
    /// Converts; fails with `result_invalid` where JSON has no form for it.
    ///
    /// # Errors
    /// [`InvalidValue`] says what is in the way.
    fn into_value(self) -> Result<Value, InvalidValue>;
}

/// What a task may take as its arguments.
pub trait FromValue: Sized {
    /// Converts.
    ///
    /// # Errors
    /// [`InvalidValue`] says what was expected and what was found.
    fn from_value(value: Value) -> Result<Self, InvalidValue>;
}

impl IntoValue for Value {
    fn into_value(self) -> Result<Value, InvalidValue> {
        Ok(self)
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        Ok(value)
    }
}

impl IntoValue for () {
    fn into_value(self) -> Result<Value, InvalidValue> {
        Ok(Value::Null)
    }
}

/// Takes any arguments and ignores them, so that a task without arguments can be written `|_, ()|`.
impl FromValue for () {
    fn from_value(_: Value) -> Result<Self, InvalidValue> {
        Ok(())
    }
}

macro_rules! infallible {
    ($($type:ty => |$x:ident| $make:expr;)+) => {$(
        impl From<$type> for Value {
            fn from($x: $type) -> Self { $make }
        }
        impl IntoValue for $type {
            fn into_value(self) -> Result<Value, InvalidValue> { Ok(self.into()) }
        }
    )+};
}

infallible! {
    bool => |x| Self::Bool(x);
    i64 => |x| Self::Int(x);
    i32 => |x| Self::Int(x.into());
    u32 => |x| Self::Int(x.into());
    u64 => |x| i64::try_from(x).map_or(Self::UInt(x), Self::Int);
    usize => |x| Self::from(x as u64);
    f64 => |x| Self::Float(x);
    &str => |x| Self::String(x.to_owned());
    String => |x| Self::String(x);
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self, InvalidValue> {
                let fit = match value {
                    Value::Int(n) => Self::try_from(n).ok(),
                    Value::UInt(n) => Self::try_from(n).ok(),
                    _ => return value.mismatch(concat!("an integer (", stringify!($type), ")")),
                };
                fit.ok_or_else(|| InvalidValue(format!(concat!("{} does not fit ", stringify!($type)), value)))
            }
        }
    )+};
}

integers!(i64 i32 u32 u64 usize);

impl FromValue for bool {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        match value {
            Value::Bool(b) => Ok(b),
            other => other.mismatch("a boolean"),
        }
    }
}

impl FromValue for f64 {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        match value {
            Value::Float(x) => Ok(x),
            Value::Int(n) => Ok(n as Self),
            Value::UInt(n) => Ok(n as Self),
            other => other.mismatch("a number"),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        match value {
            Value::String(s) => Ok(s),
            other => other.mismatch("a string"),
        }
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Result<Value, InvalidValue> {
        self.map_or(Ok(Value::Null), T::into_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        if value == Value::Null { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Result<Value, InvalidValue> {
        self.into_iter().map(T::into_value).collect::<Result<_, _>>().map(Value::List)
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        match value {
            Value::List(items) => items.into_iter().map(T::from_value).collect(),
            other => other.mismatch("a list"),
        }
    }
}

macro_rules! maps {
    ($($map:ident)+) => {$(
        impl<T: IntoValue> IntoValue for $map<String, T> {
            fn into_value(self) -> Result<Value, InvalidValue> {
                let entries = self.into_iter().map(|(key, item)| Ok((key, item.into_value()?)));
                entries.collect::<Result<_, _>>().map(Value::Map)
            }
        }
        impl<T: FromValue> FromValue for $map<String, T> {
            fn from_value(value: Value) -> Result<Self, InvalidValue> {
                match value {
                    Value::Map(map) => {
                        map.into_iter().map(|(key, item)| Ok((key, T::from_value(item)?))).collect()
                    }
                    other => other.mismatch("a map"),
                }
            }
        }
    )+};
}

maps!(BTreeMap HashMap);

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::List(vec![]), |inner, _| Value::List(vec![inner]))
    }

    #[test]
    fn only_what_json_can_say_passes() {
        assert!(nested(MAX_DEPTH - 1).check().is_ok());
        assert!(nested(MAX_DEPTH).check().is_err());
        assert!(Value::Float(f64::NAN).check().is_err());
        assert!(Value::List(vec![Value::Float(f64::INFINITY)]).check().is_err());
        assert!(Value::Float(0.1).check().is_ok());
    }

    #[test]
    fn text_is_json() {
        let value = Value::Map(BTreeMap::from([
            ("big".into(), u64::MAX.into()),
            ("s".into(), "a\"\\\n\0🎉".into()),
            ("l".into(), Value::List(vec![true.into(), 1.5.into(), 2.0.into(), Value::Null])),
        ]));
        assert_eq!(
            value.to_string(),
            r#"{"big":18446744073709551615,"l":[true,1.5,2.0,null],"s":"a\"\\\n\u0000🎉"}"#
        );
    }

    #[test]
    fn conversions_keep_64_bits_and_name_what_does_not_fit() {
        assert_eq!(u64::from_value(u64::MAX.into()), Ok(u64::MAX));
        assert_eq!(Value::from(9_007_199_254_740_993u64), Value::Int(9_007_199_254_740_993));
        assert_eq!(u32::from_value(Value::Int(-1)).unwrap_err().to_string(), "-1 does not fit u32");
        assert_eq!(
            String::from_value(Value::Int(1)).unwrap_err().to_string(),
            "expected a string, found an integer"
        );
        let list = vec![Some(1i64), None].into_value().unwrap();
        assert_eq!(Vec::<Option<i64>>::from_value(list), Ok(vec![Some(1), None]));
    }
}
