//! From any serde type to a [`Value`].

use std::collections::BTreeMap;

use serde::ser::{self, SerializeMap};
use serde::{Serialize, Serializer};

use crate::value::{InvalidValue, Value};

/// Serialises any serde type into a [`Value`].
pub(super) struct ToValue;

/// Collects the parts of a list or map, and wraps it for an enum's variant.
pub(super) struct Collect<C> {
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
