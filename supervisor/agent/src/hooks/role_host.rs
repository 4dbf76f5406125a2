//! The supervisor, as hooks see it: calls of actions in a role.

use std::time::Duration;

use async_trait::async_trait;
use talon_extensions::EntryKey;
use talon_proto::host::ExecuteResponse;

/// A call of an action that plays a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleCall {
    /// The entry of the configuration.
    pub entry: EntryKey,
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The action.
    pub action: String,
    /// The arguments, as one JSON object.
    pub arguments_json: String,
    /// How long it may take. The supervisor ends it then.
    pub deadline: Duration,
}

/// The supervisor could not be asked, or refused the request. A plugin's answer is never an error of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RoleCallError(pub String);

/// The supervisor's host service, for calls in a role.
#[async_trait]
pub trait RoleHost: Send + Sync {
    /// Makes a call. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`RoleCallError`]
    async fn call(&self, call: &RoleCall) -> Result<ExecuteResponse, RoleCallError>;
}

/// No supervisor: every call fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRoleHost;

#[async_trait]
impl RoleHost for NoRoleHost {
    async fn call(&self, _: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        Err(RoleCallError("there is no supervisor".to_owned()))
    }
}
