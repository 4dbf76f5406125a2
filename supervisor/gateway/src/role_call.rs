//! The call of an action that plays a role.

use std::time::Duration;

use talon_extensions::Role;
use talon_proto::host::{ExecuteRequest, ExecuteResponse};
use tokio::time::timeout;
use tonic::Status;

use crate::backends::Backends;
use crate::identity::Caller;

/// How long the supervisor may take beyond the deadline until it says that the plugin passed it. As in the agent.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);

/// A call of an action in a role, as an entry of the operator's says.
#[derive(Debug)]
pub(crate) struct RoleCall<'e> {
    pub(crate) role: Role,
    /// `plugin.action`
    pub(crate) action: &'e str,
    /// The name of the entry.
    pub(crate) extension: &'e str,
    pub(crate) deadline: Duration,
    pub(crate) arguments_json: String,
}

impl RoleCall<'_> {
    /// Makes the call, for this caller. `None`: there is no answer in time.
    ///
    /// # Errors
    /// The supervisor did not make it.
    pub(crate) async fn make(
        self,
        backends: &Backends,
        caller: &Caller,
    ) -> Result<Option<ExecuteResponse>, Status> {
        let (plugin, action) = self.action.split_once('.').unwrap_or((self.action, ""));
        let call = ExecuteRequest {
            plugin: plugin.to_owned(),
            action: action.to_owned(),
            arguments_json: self.arguments_json,
            timeout_ms: u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX),
            role: self.role.as_str().to_owned(),
            extension: self.extension.to_owned(),
            ..ExecuteRequest::default()
        };
        let mut host = backends.host(caller);
        match timeout(self.deadline + DEADLINE_GRACE, host.execute(call)).await {
            Err(_) => Ok(None),
            Ok(answered) => Ok(Some(answered?.into_inner())),
        }
    }
}
