//! Deserializes one argument as the type that its field asks for.

use serde::de::{Deserializer, IntoDeserializer, Visitor};

use super::ArgsError;
use super::argument::Argument;
use crate::schema::Kind;

impl IntoDeserializer<'_, ArgsError> for Argument {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
            let number = self.integer($type::MIN, $type::MAX)?;
            self.visit(|_| visitor.$visit(number))
        }
    )*};
}

impl<'de> Deserializer<'de> for Argument {
    type Error = ArgsError;

    integers! {
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_i128 visit_i128 i128
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
        deserialize_u128 visit_u128 u128
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        super::any::deserialize(self, visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        let number = self.number()?;
        self.visit(|_| visitor.visit_f64(number))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        let value = self.boolean()?;
        self.visit(|_| visitor.visit_bool(value))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        let mut letters = self.text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => self.visit(|_| visitor.visit_char(letter)),
            _ => Err(self.mismatch(&"one character")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        if self.is_null {
            return Err(self.mismatch(&"a string"));
        }
        self.visit(|text| visitor.visit_str(text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.visit(|text| visitor.visit_str(text))
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.visit(|text| visitor.visit_bytes(text.as_bytes()))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.visit(|text| visitor.visit_bytes(text.as_bytes()))
    }

    /// Callers leave out an optional argument, but some send `null`; only a string may really mean that word.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        if self.is_null || self.kind != Kind::String && self.text.trim() == "null" {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        match self.text.trim() {
            "" | "null" => self.visit(|_| visitor.visit_unit()),
            _ => Err(self.mismatch(&"nothing")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.json("a JSON array such as [\"a\",\"b\"]", |json| json.deserialize_seq(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, ArgsError> {
        self.json(&format!("a JSON array of {len}"), |json| json.deserialize_tuple(len, visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.json("a JSON object such as {\"a\":1}", |json| json.deserialize_map(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        self.json("a JSON object such as {\"a\":1}", |json| json.deserialize_struct(name, fields, visitor))
    }

    /// A bare word is a variant's name; a variant with fields is written as JSON.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        if self.text.trim_start().starts_with('{') {
            let expected = format!("one of {}", variants.join(", "));
            return self.json(&expected, |json| json.deserialize_enum(name, variants, visitor));
        }
        self.visit(|text| visitor.visit_enum(text.trim().into_deserializer()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.visit(|_| visitor.visit_unit())
    }
}
