//! A defined sub-agent.

use std::sync::Arc;

use talon_agent_settings::SubAgentEntry;

use super::error::DefinitionError;
use super::limits::MAX_NAME_BYTES;
use crate::answer::Schema;

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
    /// [`DefinitionError`]
    pub(super) fn new(name: &str, entry: SubAgentEntry) -> Result<Self, DefinitionError> {
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_name {
            return Err(DefinitionError::Name);
        }
        if entry.schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            return Err(DefinitionError::NoObject);
        }
        let schema = Schema::new(entry.schema.clone())?;
        Ok(Self { schema: Arc::new(schema), entry })
    }
}
