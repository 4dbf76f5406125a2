//! The script behind an action.

use std::sync::Arc;

use talon_lua_engine::CallError;
use talon_sdk::{ToolError, tracing};

use crate::scripts::Loaded;
use crate::service::Service;

/// A script that can be called.
pub(super) fn loaded(service: &Service, name: &str) -> Result<Arc<Loaded>, ToolError> {
    match service.scripts().get(name) {
        None => Err(ToolError::new(format!(
            "there is no script {name}.lua any more: put it back, or `talon reload`"
        ))),
        Some(entry) => entry.loaded.ok_or_else(|| {
            let failure = entry.failure.unwrap_or_default();
            ToolError::new(format!("the script {name}.lua is not loaded: {failure}"))
        }),
    }
}

/// A failure of a script, for whoever called it, and for the log.
pub(super) fn failed(name: &str, error: &CallError) -> ToolError {
    tracing::warn!(script = name, kind = error.kind.as_str(), "failed: {error}");
    ToolError::new(format!("the script {name}.lua failed: {error}"))
}
