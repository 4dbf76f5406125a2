//! Tools that the agent answers itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_proto::plugin::PluginCapabilities;

use super::{Allowed, Caller, Clock, Listener};
use crate::loop_context::ToolResult;

/// A call of one of them.
#[derive(Clone)]
pub struct OwnCall {
    /// Whose turn it is.
    pub caller: Caller,
    /// The model's id of the call.
    pub call_id: String,
    /// The name under which it is offered as a plugin: `memory`, `subagent`.
    pub plugin: String,
    /// Which action.
    pub action: String,
    /// Its arguments on the wire.
    pub args: BTreeMap<String, String>,
    /// What may be called in the turn: [`TurnSpec::within`](super::TurnSpec::within). What is started by this call may do no more.
    pub within: Vec<String>,
    /// What the operator lets whoever talks call: [`TurnSpec::allowed`](super::TurnSpec::allowed). The same holds of it.
    pub allowed: Allowed,
    /// Who hears of what it does.
    pub listener: Arc<dyn Listener>,
    /// The turn's clock: what starts a turn within the turn passes it on ([`super::TurnSpec::outer`]).
    pub clock: Clock,
}

/// Actions that look like a plugin's to the model, and whose answers take the guard's layers like a plugin's.
#[async_trait]
pub trait OwnTools: Send + Sync {
    /// What it offers in a turn of this caller; `None` for nothing.
    fn capabilities(&self, caller: &Caller) -> Option<PluginCapabilities>;

    /// Answers a call of one of them. A failure is a result, too.
    async fn call(&self, call: OwnCall) -> ToolResult;
}
