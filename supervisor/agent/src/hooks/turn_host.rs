//! Calls of hooks as calls of a turn: what their plugins ask of models is charged to it.

use std::sync::Arc;

use async_trait::async_trait;
use talon_proto::host::ExecuteResponse;

use super::role_host::{RoleCall, RoleCallError, RoleHost};
use crate::plugin_calls::{PluginCalls, TurnModelUse};

/// Makes calls of hooks for one turn.
pub(super) struct TurnRoleHost {
    pub(super) inner: Arc<dyn RoleHost>,
    pub(super) calls: Arc<PluginCalls>,
    pub(super) turn: Arc<TurnModelUse>,
}

#[async_trait]
impl RoleHost for TurnRoleHost {
    async fn call(&self, call: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        let in_flight = self.calls.begin(&call.plugin, &self.turn, None);
        self.inner.call(&RoleCall { call_id: in_flight.id().to_owned(), ..call.clone() }).await
    }
}
