//! What functions of `string` return.

use mlua::{IntoLua as _, Lua, MultiValue, Value};

use super::Failure;
use crate::pattern::Captured;

pub(super) type Returned = Result<MultiValue, Failure>;

pub(super) fn number(value: usize) -> Value {
    // No text is so long that this is not exact.
    Value::Number(value as f64)
}

pub(super) fn value(lua: &Lua, captured: Captured<'_>) -> mlua::Result<Value> {
    match captured {
        Captured::Text(text) => lua.create_string(text)?.into_lua(lua),
        Captured::Position(place) => Ok(number(place)),
    }
}
