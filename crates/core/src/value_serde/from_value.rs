//! From a [`Value`] to any serde type.

use serde::Deserializer;
use serde::de::{self, IntoDeserializer};

use crate::value::{InvalidValue, Value};

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
