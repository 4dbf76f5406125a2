//! What can go wrong in a function of `string`.

use mlua::{Error, Lua, MultiValue, Value};

use super::PatternError;
use crate::clock;

/// How many functions above the one that raises stands the one that is to blame: see the wrappers.
const CALLER: f64 = 3.0;
/// Raises a value as it is.
const AS_IT_IS: f64 = 0.0;
/// What the machine raises when memory is at its limit.
const NO_MEMORY: &str = "not enough memory";

/// Why there is no result.
pub(super) enum Failure {
    /// An error of the caller: its text, without a place.
    Raised(String),
    /// What a function of the script raised, on its way through.
    Passed(Value),
    /// The machine cannot go on, or its time is over: nothing that a script may hold back.
    Machine(Error),
}

impl Failure {
    /// What `pcall` returned after `false`.
    pub(super) fn of_callback(raised: Value) -> Self {
        match &raised {
            Value::Error(error) => Self::Machine((**error).clone()),
            Value::String(text) if text.as_bytes() == NO_MEMORY.as_bytes() => Self::no_memory(),
            _ => Self::Passed(raised),
        }
    }

    pub(super) fn no_memory() -> Self {
        Self::Machine(Error::MemoryError(NO_MEMORY.to_owned()))
    }

    /// As the wrappers take it.
    pub(super) fn into_returned(self, lua: &Lua) -> mlua::Result<MultiValue> {
        let (raised, level) = match self {
            Self::Raised(text) => (Value::String(lua.create_string(text)?), CALLER),
            Self::Passed(value) => (value, AS_IT_IS),
            Self::Machine(error) => return Err(error),
        };
        Ok(MultiValue::from_iter([Value::Boolean(false), raised, Value::Number(level)]))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Machine(error)
    }
}

impl From<PatternError> for Failure {
    fn from(error: PatternError) -> Self {
        match error {
            PatternError::Stopped => Self::Machine(clock::time_is_over()),
            error => Self::Raised(error.to_string()),
        }
    }
}
