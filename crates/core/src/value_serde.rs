//! [`Value`] and any serde type, under the feature `serde` (spec 4).

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeOwned, IntoDeserializer};
use serde::ser::{self, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl<'de> Deserializer<'de> for Value {
    type Error = InvalidValue;

    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(b) => visitor.visit_bool(b),
            Self::Int(n) => visitor.visit_i64(n),
            Self::UInt(n) => visitor.visit_u64(n),
            Self::Float(x) => visitor.visit_f64(x),
            Self::String(s) => visitor.visit_string(s),
            Self::List(items) => {
                visitor.visit_seq(de::value::SeqDeserializer::new(items.into_iter()))
            }
            Self::Map(map) => visitor.visit_map(de::value::MapDeserializer::new(map.into_iter())),
        }
    }

    fn deserialize_option<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        match self {
            Self::Null => visitor.visit_none(),
            other => visitor.visit_some(other),
        }
    }

    fn deserialize_newtype_struct<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        match self {
            Self::String(variant) => visitor.visit_enum(variant.into_deserializer()),
            Self::Map(map) if map.len() == 1 => {
                visitor.visit_enum(de::value::MapAccessDeserializer::new(
                    de::value::MapDeserializer::new(map.into_iter()),
                ))
            }
            other => Err(InvalidValue::new(format!(
                "expected a variant's name or a map with one, found {}",
                other.kind()
            ))),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, InvalidValue> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Serialises any serde type into a [`Value`].
struct ToValue;

/// Collects the parts of a list or map, and wraps it for an enum's variant.
struct Collect<C> {
    parts: C,
    key: Option<String>,
    variant: Option<&'static str>,
}

impl<C: Default> Collect<C> {
    fn new(variant: Option<&'static str>) -> Self {
        Self { parts: C::default(), key: None, variant }
    }
}

fn wrap(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Map(BTreeMap::from([(name.to_owned(), value)])),
        None => value,
    }
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = InvalidValue;
    type SerializeSeq = Collect<Vec<Value>>;
    type SerializeTuple = Collect<Vec<Value>>;
    type SerializeTupleStruct = Collect<Vec<Value>>;
    type SerializeTupleVariant = Collect<Vec<Value>>;
    type SerializeMap = Collect<BTreeMap<String, Value>>;
    type SerializeStruct = Collect<BTreeMap<String, Value>>;
    type SerializeStructVariant = Collect<BTreeMap<String, Value>>;

    fn serialize_bool(self, x: bool) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_i8(self, x: i8) -> Result<Value, InvalidValue> {
        Ok(Value::Int(x.into()))
    }
    fn serialize_i16(self, x: i16) -> Result<Value, InvalidValue> {
        Ok(Value::Int(x.into()))
    }
    fn serialize_i32(self, x: i32) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_i64(self, x: i64) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_u8(self, x: u8) -> Result<Value, InvalidValue> {
        Ok(Value::Int(x.into()))
    }
    fn serialize_u16(self, x: u16) -> Result<Value, InvalidValue> {
        Ok(Value::Int(x.into()))
    }
    fn serialize_u32(self, x: u32) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_u64(self, x: u64) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_f32(self, x: f32) -> Result<Value, InvalidValue> {
        Ok(Value::Float(x.into()))
    }
    fn serialize_f64(self, x: f64) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_char(self, x: char) -> Result<Value, InvalidValue> {
        Ok(Value::String(x.into()))
    }
    fn serialize_str(self, x: &str) -> Result<Value, InvalidValue> {
        Ok(x.into())
    }
    fn serialize_bytes(self, x: &[u8]) -> Result<Value, InvalidValue> {
        Ok(Value::List(x.iter().map(|b| Value::Int((*b).into())).collect()))
    }
    fn serialize_none(self) -> Result<Value, InvalidValue> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, x: &T) -> Result<Value, InvalidValue> {
        x.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, InvalidValue> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, InvalidValue> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, InvalidValue> {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        x: &T,
    ) -> Result<Value, InvalidValue> {
        x.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        x: &T,
    ) -> Result<Value, InvalidValue> {
        Ok(wrap(Some(variant), x.serialize(Self)?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, InvalidValue> {
        Ok(Collect::new(None))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, InvalidValue> {
        Ok(Collect::new(None))
    }
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, InvalidValue> {
        Ok(Collect::new(None))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, InvalidValue> {
        Ok(Collect::new(Some(variant)))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, InvalidValue> {
        Ok(Collect::new(None))
    }
    fn serialize_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, InvalidValue> {
        Ok(Collect::new(None))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, InvalidValue> {
        Ok(Collect::new(Some(variant)))
    }
}

macro_rules! collect_list {
    ($($shape:ident $push:ident)+) => {$(
        impl ser::$shape for Collect<Vec<Value>> {
            type Ok = Value;
            type Error = InvalidValue;
            fn $push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
                self.parts.push(item.serialize(ToValue)?);
                Ok(())
            }
            fn end(self) -> Result<Value, InvalidValue> {
                Ok(wrap(self.variant, Value::List(self.parts)))
            }
        }
    )+};
}

collect_list! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! collect_fields {
    ($($shape:ident)+) => {$(
        impl ser::$shape for Collect<BTreeMap<String, Value>> {
            type Ok = Value;
            type Error = InvalidValue;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                item: &T,
            ) -> Result<(), InvalidValue> {
                self.parts.insert(key.to_owned(), item.serialize(ToValue)?);
                Ok(())
            }
            fn end(self) -> Result<Value, InvalidValue> {
                Ok(wrap(self.variant, Value::Map(self.parts)))
            }
        }
    )+};
}

collect_fields!(SerializeStruct SerializeStructVariant);

impl SerializeMap for Collect<BTreeMap<String, Value>> {
    type Ok = Value;
    type Error = InvalidValue;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), InvalidValue> {
        self.key = match key.serialize(ToValue)? {
            Value::String(text) => Some(text),
            other => {
                let kind = other.kind();
                return Err(InvalidValue::new(format!(
                    "a map key is {kind}; JSON keys are strings"
                )));
            }
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        let key = self.key.take().ok_or_else(|| InvalidValue::new("a map value without a key"))?;
        self.parts.insert(key, item.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, InvalidValue> {
        Ok(Value::Map(self.parts))
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
