//! Decodes the arguments on the wire into a tool's arguments struct.
//!
//! Every argument arrives as text: `"5"`, `"true"`, `"[1,2]"`. The type of each field decides how its text is
//! parsed; lists and structs are parsed as JSON. Where the caller sent JSON, that is read instead: it tells a
//! string from a number in fields that take both.

mod any;
mod argument;
mod error;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use talon_arguments::Arguments;

use argument::Argument;
pub(crate) use error::ArgsError;

use crate::schema::Kind;

/// The arguments of a tool: a struct that serde can fill by field name and schemars can describe.
///
/// Implemented for everything that is `serde::Deserialize` and `schemars::JsonSchema`; write
/// [`#[talon_sdk::args]`](macro@crate::args) above the struct. `()` means no arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's arguments",
    label = "needs serde::Deserialize and schemars::JsonSchema",
    note = "write #[talon_sdk::args] above the struct, or derive both"
)]
pub trait ToolArgs: DeserializeOwned + schemars::JsonSchema {}

impl<T: DeserializeOwned + schemars::JsonSchema> ToolArgs for T {}

/// Fills `A` from the arguments of one call: from JSON where there is some. `kinds` gives the kind of each field whose Rust type does not
/// fix it.
pub(crate) fn decode<A: DeserializeOwned>(
    texts: BTreeMap<String, String>,
    json: Option<&Arguments>,
    kinds: &BTreeMap<String, Kind>,
) -> Result<A, ArgsError> {
    let kind = |name: &str| kinds.get(name).copied().unwrap_or(Kind::Mixed);
    let arguments = match json {
        Some(json) => json.iter().map(|(name, json)| Argument::of_json(name, json, kind(name))).collect(),
        None => texts.into_iter().map(|(name, text)| Argument::of_text(kind(&name), name, text)).collect(),
    };
    A::deserialize(AllArguments(arguments))
}

struct AllArguments(Vec<Argument>);

impl<'de> Deserializer<'de> for AllArguments {
    type Error = ArgsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        let entries = self.0.into_iter().map(|argument| (argument.name.clone(), argument));
        visitor.visit_map(MapDeserializer::new(entries))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgsError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgsError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
