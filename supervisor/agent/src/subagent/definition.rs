//! A defined sub-agent.

use std::sync::Arc;

use talon_agent_settings::SubAgentEntry;

use crate::answer::Schema;

/// The longest name, which is also a tool's.
const MAX_NAME_BYTES: usize = 64;
/// A defined sub-agent.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) entry: SubAgentEntry,
    pub(super) schema: Arc<Schema>,
}

impl Definition {
    /// Checks an entry and compiles its schema.
    ///
    /// # Errors
    /// What to correct.
    pub(super) fn new(name: &str, entry: SubAgentEntry) -> Result<Self, String> {
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_name {
            return Err(format!(
                "a name has 1 to {MAX_NAME_BYTES} of A-Z, a-z, 0-9, _ and -, since the model calls it by this; rename it"
            ));
        }
        if entry.schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            return Err("schema: it has to be that of an object (\"type\": \"object\")".to_owned());
        }
        let schema =
            Schema::new(entry.schema.clone()).map_err(|error| format!("schema: {error}; correct it"))?;
        Ok(Self { schema: Arc::new(schema), entry })
    }
}
