//! What a function of a script gets.

use std::collections::BTreeMap;

use mlua::serde::SerializeOptions;
use mlua::{Lua, LuaSerdeExt as _, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Phase;

/// The values of `ctx`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// The message that it looks at: a person's, the agent's answer, or an event in a line.
    pub message: String,
    /// In which session.
    pub session_id: String,
    /// Whose session it is.
    pub sender: String,
    /// The channel, such as `cli`.
    pub channel: String,
    /// On which side of the model, for hooks.
    pub phase: Option<Phase>,
    /// What earlier hooks noted.
    pub metadata: BTreeMap<String, String>,
    /// Further values by name, such as `event` or `run`.
    pub fields: Map<String, Value>,
}

impl Context {
    /// The table, without the functions.
    pub(crate) fn to_table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        // JSON's null is Lua's nil, not a value of its own that no script knows.
        let plain = SerializeOptions::new().serialize_none_to_null(false).serialize_unit_to_null(false);
        for (name, value) in &self.fields {
            table.raw_set(name.as_str(), lua.to_value_with(value, plain)?)?;
        }
        table.raw_set("message", self.message.as_str())?;
        table.raw_set("session_id", self.session_id.as_str())?;
        table.raw_set("sender", self.sender.as_str())?;
        table.raw_set("channel", self.channel.as_str())?;
        table.raw_set("phase", self.phase.map(Phase::as_str))?;
        let metadata = lua.create_table()?;
        for (key, value) in &self.metadata {
            metadata.raw_set(key.as_str(), value.as_str())?;
        }
        table.raw_set("metadata", metadata)?;
        Ok(table)
    }
}
