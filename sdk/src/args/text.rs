//! One argument: its text, parsed as the type that the field asks for.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserializer, IntoDeserializer, Visitor};

use super::ArgsError;
use crate::schema::Kind;

/// Up to this value a float represents every integer exactly, so `3.0` can safely be read as 3.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// One argument of a call.
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) kind: Kind,
}

impl IntoDeserializer<'_, ArgsError> for Argument {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl Argument {
    pub(super) fn mismatch(&self, expected: &dyn Display) -> ArgsError {
        ArgsError::mismatch(&self.name, &self.text, expected)
    }

    /// Runs a visitor and prefixes its error with the argument's name.
    pub(super) fn visit<T>(&self, visit: impl FnOnce(&str) -> Result<T, ArgsError>) -> Result<T, ArgsError> {
        visit(&self.text).map_err(|error| error.in_argument(&self.name))
    }

    /// An integer within the bounds of `N`; `3.0` is one too, because models write that.
    pub(super) fn integer<N: FromStr + Display + TryFrom<i128>>(
        &self,
        min: N,
        max: N,
    ) -> Result<N, ArgsError> {
        let text = self.text.trim();
        if let Ok(number) = text.parse::<N>() {
            return Ok(number);
        }
        if let Ok(float) = text.parse::<f64>()
            && float.fract() == 0.0
            && float.abs() <= MAX_EXACT_FLOAT
        {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
            let whole = float as i128;
            if let Ok(number) = N::try_from(whole) {
                return Ok(number);
            }
        }
        Err(self.mismatch(&format_args!("an integer from {min} to {max}")))
    }

    pub(super) fn number(&self) -> Result<f64, ArgsError> {
        match self.text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.mismatch(&"a number")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, ArgsError> {
        match self.text.trim() {
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.mismatch(&"true or false")),
        }
    }

    /// Parses the text as JSON, for types that only JSON can express. It parses from a reader, because the result must
    /// not borrow from an argument that ends with this call.
    fn json<T>(
        &self,
        expected: &str,
        read: impl FnOnce(&mut JsonReader<'_>) -> serde_json::Result<T>,
    ) -> Result<T, ArgsError> {
        let mut json = serde_json::Deserializer::from_reader(self.text.as_bytes());
        read(&mut json).and_then(|value| json.end().map(|()| value)).map_err(|error| {
            // "expected an object" does not help a caller who did send an object.
            let right_kind = match self.kind {
                Kind::Array => self.text.trim_start().starts_with('['),
                _ => self.text.trim_start().starts_with('{'),
            };
            if right_kind && error.is_data() {
                ArgsError::invalid(&self.name, &self.text, &error)
            } else {
                self.mismatch(&format_args!("{expected} ({error})"))
            }
        })
    }
}

type JsonReader<'t> = serde_json::Deserializer<serde_json::de::IoRead<&'t [u8]>>;

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
        self.visit(|text| visitor.visit_str(text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        self.visit(|text| visitor.visit_str(text))
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
        if self.kind != Kind::String && self.text.trim() == "null" {
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
