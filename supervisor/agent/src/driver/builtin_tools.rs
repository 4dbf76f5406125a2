//! Tools that the agent implements itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_llm::route::router::Pins;
use talon_proto::plugin::PluginCapabilities;

use super::{AllowedTools, Caller, Clock, Listener};
use crate::tool_result::ToolResult;
use crate::traces::SpanContext;

/// A call of a built-in tool.
#[derive(Clone)]
pub struct BuiltinCall {
    /// The turn.
    pub caller: Caller,
    /// The model's id of the call.
    pub call_id: String,
    /// The plugin name under which it is offered: `memory`, `subagent`.
    pub plugin: String,
    /// The action.
    pub action: String,
    /// Which of the turn's questions it answers, from 1.
    pub iteration: u32,
    /// Which of the answer's calls it is, from 0.
    pub place: usize,
    /// Its arguments on the wire.
    pub args: BTreeMap<String, String>,
    /// The turn's restriction, [`TurnSpec::within`](super::TurnSpec::within). It binds everything that this
    /// call starts.
    pub within: Vec<String>,
    /// The operator's lists for the caller, [`TurnSpec::allowed`](super::TurnSpec::allowed). They bind
    /// everything that this call starts.
    pub allowed: AllowedTools,
    /// The turn's pins: they hold for everything that this call asks of models.
    pub pins: Pins,
    /// Receives the call's chunks.
    pub listener: Arc<dyn Listener>,
    /// The turn's clock, for a turn that the call starts ([`super::TurnSpec::outer`]).
    pub clock: Clock,
    /// The call's position in a trace, for a turn that the call starts.
    pub trace: Option<SpanContext>,
}

/// Built-in actions. The model sees them as a plugin's, and their answers pass the guard's layers like a
/// plugin's.
#[async_trait]
pub trait BuiltinTools: Send + Sync {
    /// The actions offered to this caller; `None` for none.
    fn capabilities(&self, caller: &Caller) -> Option<PluginCapabilities>;

    /// Whether a call of this action that was begun before a kill is made again, since it goes on where it was. Of any
    /// other it is not known what it did.
    fn resumes(&self, _action: &str) -> bool {
        false
    }

    /// Runs a call. A failure is a result, too.
    async fn call(&self, call: BuiltinCall) -> ToolResult;
}
