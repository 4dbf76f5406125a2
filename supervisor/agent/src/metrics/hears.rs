//! Metrics of turns: transitions and calls from the driver, and the rest from the turns' chunks.

use std::time::Duration;

use talon_proto::agent::chunk::Kind;

use super::Metrics;
use crate::driver::{Caller, Observe, TurnEnd};
use crate::loop_context::Ran;
use crate::machine::Record;

/// The tool label for calls of tools that were not offered.
const UNKNOWN: &str = "(unknown)";

impl Metrics {
    /// Counts a chunk of a turn; approvals and sub-agents are reported in no other way.
    pub(crate) fn heard(&self, chunk: &Kind) {
        match chunk {
            Kind::Approval(approval) => self.approvals.one(&[&approval.state]),
            Kind::SubagentResult(result) => {
                let outcome = if result.error.is_empty() { "ok" } else { "failed" };
                self.subagents.one(&[&result.agent, outcome]);
                self.subagent_seconds.took(&[&result.agent], result.duration_ms as f64 / 1000.0);
            }
            _ => {}
        }
    }
}

impl Observe for Metrics {
    fn transition(&self, _caller: &Caller, record: &Record, in_state: Duration) {
        self.transitions.one(&[record.from.word(), record.event.word()]);
        self.state_seconds.took(&[record.from.word()], in_state.as_secs_f64());
    }

    fn tool(&self, _caller: &Caller, plugin: &str, action: &str, ran: Ran, latency: Duration) {
        let of = |name| if plugin.is_empty() { UNKNOWN } else { name };
        let outcome = match ran {
            Ran::Succeeded => "ok",
            Ran::Failed => "failed",
            Ran::NotOffered => "not_offered",
            Ran::OverTheLimit => "not_run",
        };
        let labels = [of(plugin), of(action), outcome];
        self.tool_calls.one(&labels);
        self.tool_seconds.took(&labels, latency.as_secs_f64());
    }

    fn ended(&self, caller: &Caller, end: &TurnEnd) {
        // A sub-agent's end is reported by its result.
        if caller.subagent.is_empty() {
            let outcome = end.outcome.as_ref().map_or_else(|(word, _)| word.as_str(), |_| "done");
            self.turns.one(&[outcome]);
            self.turn_seconds.took(&[outcome], end.duration_ms as f64 / 1000.0);
        }
    }
}
