//! What a script calls a function of `string` with: converted and refused as the language's own functions do it.

use mlua::{Lua, LuaString, MultiValue, Value};

use super::Failure;

/// The arguments of a call, counted from 1.
pub(super) struct Arguments<'l> {
    lua: &'l Lua,
    function: &'static str,
    values: MultiValue,
}

impl<'l> Arguments<'l> {
    pub(super) fn new(lua: &'l Lua, function: &'static str, values: MultiValue) -> Self {
        Self { lua, function, values }
    }

    pub(super) fn lua(&self) -> &'l Lua {
        self.lua
    }

    /// The value, if there is one: `nil` is one.
    pub(super) fn get(&self, number: usize) -> Option<&Value> {
        self.values.get(number - 1)
    }

    /// A text; a number becomes one.
    pub(super) fn text(&self, number: usize) -> Result<LuaString, Failure> {
        match self.get(number) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                self.lua.coerce_string(value.clone())?.ok_or_else(|| self.refused(number, "string"))
            }
            _ => Err(self.refused(number, "string")),
        }
    }

    /// A whole number; a text that is a number becomes one, and what comes after the point is dropped.
    pub(super) fn integer(&self, number: usize, default: i32) -> Result<i32, Failure> {
        match self.get(number) {
            None | Some(Value::Nil) => Ok(default),
            Some(value @ (Value::Integer(_) | Value::Number(_) | Value::String(_))) => {
                let converted = self.lua.coerce_number(value.clone())?;
                converted.map(whole).ok_or_else(|| self.refused(number, "number"))
            }
            _ => Err(self.refused(number, "number")),
        }
    }

    /// Whether it counts as true.
    pub(super) fn is_true(&self, number: usize) -> bool {
        !matches!(self.get(number), None | Some(Value::Nil | Value::Boolean(false)))
    }

    /// The error of an argument that is of another type.
    pub(super) fn refused(&self, number: usize, expected: &str) -> Failure {
        let function = self.function;
        Failure::Raised(match self.get(number) {
            Some(value) => format!(
                "invalid argument #{number} to '{function}' ({expected} expected, got {})",
                type_name(value)
            ),
            None => format!("missing argument #{number} to '{function}' ({expected} expected)"),
        })
    }
}

/// The type of a value in the language's words: it has one type of numbers.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) => "userdata",
        value => value.type_name(),
    }
}

/// A number as the language's own functions make a C `int` of it. One that does not fit is undefined in C; here it is what the
/// instruction of the processor makes of it, as there.
fn whole(number: f64) -> i32 {
    let fits = number > f64::from(i32::MIN) - 1.0 && number < f64::from(i32::MAX) + 1.0;
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) && !fits {
        return i32::MIN;
    }
    number as i32
}
