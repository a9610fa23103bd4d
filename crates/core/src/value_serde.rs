//! [`Value`] and any serde type, under the feature `serde` (spec 4).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeOwned};
use serde::ser::{self, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod from_value;
mod to_value;

use self::to_value::ToValue;
use crate::value::{FromValue, IntoValue, InvalidValue, MAX_DEPTH, Value};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(n) => serializer.serialize_i64(*n),
            Self::UInt(n) => serializer.serialize_u64(*n),
            Self::Float(x) => serializer.serialize_f64(*x),
            Self::String(s) => serializer.serialize_str(s),
            Self::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| seq.serialize_element(item))?;
                seq.end()
            }
            Self::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                map.iter().try_for_each(|(key, value)| out.serialize_entry(key, value))?;
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtDepth(0))
    }
}

/// Reads one value that lies this many levels deep, so that hostile nesting ends in an error and not in a
/// stack overflow.
#[derive(Clone, Copy)]
struct AtDepth(usize);

impl AtDepth {
    fn below<E: de::Error>(self) -> Result<Self, E> {
        if self.0 >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> de::DeserializeSeed<'de> for AtDepth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for AtDepth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, x: bool) -> Result<Value, E> {
        Ok(Value::Bool(x))
    }

    fn visit_i64<E>(self, x: i64) -> Result<Value, E> {
        Ok(Value::Int(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<Value, E> {
        Ok(x.into())
    }

    fn visit_f64<E>(self, x: f64) -> Result<Value, E> {
        Ok(Value::Float(x))
    }

    fn visit_str<E>(self, x: &str) -> Result<Value, E> {
        Ok(x.into())
    }

    fn visit_string<E>(self, x: String) -> Result<Value, E> {
        Ok(x.into())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(below)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut map = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            map.insert(key, access.next_value_seed(below)?);
        }
        Ok(Value::Map(map))
    }
}

/// Any serde type as arguments or result of a task.
///
/// ```
/// # use chongming_core::{Json, TaskContext, TaskDefinition, TaskError};
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64 }
///
/// let task = TaskDefinition::new("ship", |_: &TaskContext, Json(order): Json<Order>| {
///     Ok::<u64, TaskError>(order.id)
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoValue for Json<T> {
    fn into_value(self) -> Result<Value, InvalidValue> {
        self.0.serialize(ToValue)
    }
}

impl<T: DeserializeOwned> FromValue for Json<T> {
    fn from_value(value: Value) -> Result<Self, InvalidValue> {
        T::deserialize(value).map(Self)
    }
}

impl ser::Error for InvalidValue {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::new(message.to_string())
    }
}

impl de::Error for InvalidValue {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::new(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::HashMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Unit,
        New(u64),
        Tuple(i8, String),
        Struct { x: Option<f64> },
    }

    #[test]
    fn serde_types_round_trip() {
        let shapes = vec![
            Shape::Unit,
            Shape::New(u64::MAX),
            Shape::Tuple(-3, "ü".into()),
            Shape::Struct { x: Some(0.1) },
            Shape::Struct { x: None },
        ];
        let value = Json(&shapes).into_value().unwrap();
        assert_eq!(Json::<Vec<Shape>>::from_value(value).unwrap().0, shapes);
    }

    #[test]
    fn a_key_that_is_no_string_is_refused() {
        let error = Json(HashMap::from([(1u8, 2u8)])).into_value().unwrap_err().to_string();
        assert_eq!(error, "a map key is an integer; JSON keys are strings");
    }
}
