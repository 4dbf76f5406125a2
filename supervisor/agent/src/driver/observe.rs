//! The observer of turns, for metrics and the event bus.

use std::time::Duration;

use talon_proto::agent;

use super::{Caller, GuardTrace, TurnEnd, TurnSpec};
use crate::machine::TransitionRecord;
use crate::tool_result::CallOutcome;

/// A call that was made, or refused by the offer, the policy or a person.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'c> {
    /// The model's id of it.
    pub call_id: &'c str,
    /// The name under which the model called it.
    pub tool: &'c str,
    /// The plugin; empty for a tool that does not exist, as the action.
    pub plugin: &'c str,
    /// The action.
    pub action: &'c str,
    /// How it ended.
    pub outcome: CallOutcome,
    /// Without the time for which it waited for a person; zero if it was not made.
    pub latency: Duration,
    /// Whether a limit left anything out of its answer.
    pub truncated: bool,
    /// What the supervisor's guard did to it.
    pub guard: &'c GuardTrace,
}

/// Observes turns, for metrics and the event bus. Must not block. Every method has an empty default.
pub trait TurnObserver: Send + Sync {
    /// A turn begins, and is not one that goes on after a restart.
    fn on_turn_begin(&self, _spec: &TurnSpec) {}

    /// A transition, and how long the turn was in the previous state. The transitions of a turn that is
    /// rebuilt from its journal are not reported again.
    fn on_transition(&self, _caller: &Caller, _record: &TransitionRecord, _in_state: Duration) {}

    /// Whether the way of calls through the guard's layers is to be measured.
    fn wants_layer_times(&self) -> bool {
        false
    }

    /// A model wants a call to be made.
    fn on_tool_request(&self, _caller: &Caller, _call: &agent::ToolCall) {}

    /// A call has its result.
    fn on_tool_call(&self, _caller: &Caller, _call: &FinishedCall<'_>) {}

    /// A turn is over.
    fn on_turn_end(&self, _caller: &Caller, _end: &TurnEnd) {}
}

/// Ignores everything.
impl TurnObserver for () {}
