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
    /// The call's id for the supervisor, which a plugin's completions name. Empty: the supervisor chooses one.
    pub call_id: String,
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

/// Whether an entry of `extensions` can be called, by what its plugin declares now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// It can.
    Ready {
        /// Whether its action declares the role, and so takes the role's own arguments.
        declares_role: bool,
    },
    /// Its plugin is not up, for this reason.
    Waiting(String),
    /// It does not fit, for this reason.
    Failing(String),
}

/// The states of the entries of the running configuration.
#[async_trait]
pub trait EntryStates: Send + Sync {
    /// The state of one entry. One that the supervisor does not have yet, or any more, is waited for.
    ///
    /// # Errors
    /// [`RoleCallError`] if the supervisor cannot be asked.
    async fn entry_state(&self, entry: &EntryKey) -> Result<EntryState, RoleCallError>;
}

/// The states of jobs that plugins proposed and the operator accepted.
#[async_trait]
pub trait AcceptedJobs: Send + Sync {
    /// The state of one of them, by what its plugin declares now: its action still has to propose a job of this id. One whose
    /// plugin is gone fails.
    ///
    /// # Errors
    /// [`RoleCallError`] if the supervisor cannot be asked.
    async fn accepted_job_state(&self, job: &str, action: &str) -> Result<EntryState, RoleCallError>;
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
