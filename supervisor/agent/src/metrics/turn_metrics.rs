//! Metrics of turns: transitions and calls from the driver, and the rest from the turns' chunks.

use std::time::Duration;

use talon_proto::agent::chunk::Kind;

use super::Metrics;
use crate::driver::{Caller, FinishedCall, TurnEnd, TurnObserver};
use crate::machine::TransitionRecord;
use crate::tool_result::CallOutcome;

/// The tool label for calls of tools that were not offered.
const UNKNOWN: &str = "(unknown)";

impl Metrics {
    /// Counts a chunk of a turn; approvals and sub-agents are reported in no other way.
    pub(crate) fn count_chunk(&self, chunk: &Kind) {
        match chunk {
            Kind::Approval(approval) => self.approvals.increment(&[&approval.state]),
            Kind::SubagentResult(result) => {
                let outcome = if result.error.is_empty() { "ok" } else { "failed" };
                self.subagents.increment(&[&result.agent, outcome]);
                self.subagent_seconds.observe_seconds(&[&result.agent], result.duration_ms as f64 / 1000.0);
            }
            _ => {}
        }
    }
}

impl TurnObserver for Metrics {
    fn on_transition(&self, _caller: &Caller, record: &TransitionRecord, in_state: Duration) {
        self.transitions.increment(&[record.from.word(), record.event.word()]);
        self.state_seconds.observe_seconds(&[record.from.word()], in_state.as_secs_f64());
    }

    fn on_tool_call(&self, _caller: &Caller, call: &FinishedCall<'_>) {
        let FinishedCall { plugin, action, latency, .. } = *call;
        let of = |name| if plugin.is_empty() { UNKNOWN } else { name };
        let outcome = match call.outcome {
            CallOutcome::Succeeded => "ok",
            CallOutcome::Failed => "failed",
            CallOutcome::NotOffered => "not_offered",
            CallOutcome::OverTheLimit => "not_run",
            CallOutcome::HandedOver => "handed_over",
        };
        let labels = [of(plugin), of(action), outcome];
        self.tool_calls.increment(&labels);
        self.tool_seconds.observe_seconds(&labels, latency.as_secs_f64());
    }

    fn on_turn_end(&self, caller: &Caller, end: &TurnEnd) {
        // A sub-agent's end is reported by its result.
        if caller.subagent.is_empty() {
            let outcome = end.outcome.as_ref().map_or_else(|(word, _)| word.as_str(), |_| "done");
            self.turns.increment(&[outcome]);
            self.turn_seconds.observe_seconds(&[outcome], end.duration_ms as f64 / 1000.0);
        }
    }
}
