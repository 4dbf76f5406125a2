//! The observer of turns, for metrics.

use std::time::Duration;

use super::{Caller, TurnEnd};
use crate::machine::TransitionRecord;
use crate::tool_result::CallOutcome;

/// Observes turns, for metrics. Must not block. Every method has an empty default.
pub trait TurnObserver: Send + Sync {
    /// A transition, and how long the turn was in the previous state. The transitions of a turn that is
    /// rebuilt from its journal are not reported again.
    fn on_transition(&self, _caller: &Caller, _record: &TransitionRecord, _in_state: Duration) {}

    /// A call was made, or refused by the offer, the policy or a person (then the latency is zero). `plugin`
    /// and `action` are empty for a tool that does not exist. The latency excludes the time for which the
    /// call waited for a person.
    fn on_tool_call(
        &self,
        _caller: &Caller,
        _plugin: &str,
        _action: &str,
        _ran: CallOutcome,
        _latency: Duration,
    ) {
    }

    /// A turn is over.
    fn on_turn_end(&self, _caller: &Caller, _end: &TurnEnd) {}
}

/// Ignores everything.
impl TurnObserver for () {}
