//! Fields whose Rust type does not fix the JSON kind: flattened structs, untagged enums, `serde_json::Value`.
//! The kind in the schema decides. For a mixed kind the text decides: JSON if it parses as JSON, otherwise a
//! string.

use serde::de::{Deserializer, Visitor};
use serde_json::Value;

use super::ArgsError;
use super::argument::Argument;
use crate::schema::Kind;

pub(super) fn deserialize<'de, V: Visitor<'de>>(
    argument: Argument,
    visitor: V,
) -> Result<V::Value, ArgsError> {
    if argument.is_null {
        return argument.visit(|_| visitor.visit_unit());
    }
    match argument.kind {
        Kind::String => argument.deserialize_str(visitor),
        Kind::Integer if argument.text.trim_start().starts_with('-') => argument.deserialize_i64(visitor),
        Kind::Integer => argument.deserialize_u64(visitor),
        Kind::Number => argument.deserialize_f64(visitor),
        Kind::Boolean => argument.deserialize_bool(visitor),
        Kind::Array => argument.deserialize_seq(visitor),
        Kind::Object => argument.deserialize_map(visitor),
        Kind::Mixed => match serde_json::from_str::<Value>(&argument.text) {
            Ok(value) => argument.visit(|_| {
                value.deserialize_any(visitor).map_err(|error| ArgsError::from_message(error.to_string()))
            }),
            Err(_) => argument.deserialize_str(visitor),
        },
    }
}
