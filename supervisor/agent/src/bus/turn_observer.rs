//! Emits what turns do.

use std::sync::Arc;
use std::time::Duration;

use talon_agent_settings::milliseconds;
use talon_event_bus::{EventBus, EventKind, Payload, Subject, excerpt};
use talon_proto::agent::{
    self, AgentThinking, GuardUpdate, MessageInbound, MessageOutbound, TaskUpdate, ToolComplete, ToolExecute,
};

use crate::driver::{Caller, FinishedCall, TurnEnd, TurnObserver, TurnSpec};
use crate::machine::{Phase, TransitionRecord};
use crate::tool_result::CallOutcome;

/// The layer that neutralizes.
const SANITIZE: &str = "sanitize";
/// The verdict of a layer that refused a call.
const DENY: &str = "deny";
/// What a turn says that somebody cancelled.
const CANCELLED: &str = "cancelled";

/// Passes on what is observed, and emits it.
pub(crate) struct BusObserver {
    inner: Arc<dyn TurnObserver>,
    bus: EventBus,
}

impl BusObserver {
    pub(crate) fn new(inner: Arc<dyn TurnObserver>, bus: EventBus) -> Self {
        Self { inner, bus }
    }

    fn emit(&self, caller: &Caller, kind: EventKind, payload: impl FnOnce() -> Payload) {
        let subject = Subject { sender: &caller.sender, session: &caller.session };
        self.bus.emit_with(subject, kind, payload);
    }

    /// Emits what the guard did to a call, where that is more than letting it pass.
    fn emit_guard(&self, caller: &Caller, call: &FinishedCall<'_>) {
        let update = |layer: &str, reason: &str| GuardUpdate {
            plugin: call.plugin.to_owned(),
            action: call.action.to_owned(),
            call_id: call.call_id.to_owned(),
            layer: layer.to_owned(),
            reason: reason.to_owned(),
            neutralized: Default::default(),
        };
        if let Some(layer) = call.guard.layers.iter().find(|layer| layer.verdict == DENY) {
            self.emit(caller, EventKind::GuardRefused, || {
                Payload::GuardRefused(update(&layer.layer, &layer.reason))
            });
        }
        if !call.guard.neutralized.is_empty() {
            self.emit(caller, EventKind::GuardNeutralized, || {
                let neutralized = call.guard.neutralized.clone();
                Payload::GuardNeutralized(GuardUpdate { neutralized, ..update(SANITIZE, "") })
            });
        }
    }
}

impl TurnObserver for BusObserver {
    fn on_turn_begin(&self, spec: &TurnSpec) {
        self.inner.on_turn_begin(spec);
        let (caller, origin) = (&spec.caller, &spec.origin);
        // A sub-agent's task is no message of anybody.
        if !caller.subagent.is_empty() {
            return;
        }
        let channel = if origin.channel.is_empty() { &caller.channel } else { &origin.channel };
        let media = spec.images.len() + spec.attachments.len();
        self.emit(caller, EventKind::MessageInbound, || {
            let (text, left_out_bytes) = excerpt(&spec.request);
            Payload::MessageInbound(MessageInbound {
                turn: caller.turn,
                channel: channel.clone(),
                sender_name: origin.sender_name.clone(),
                client_id: origin.client_id.clone(),
                text,
                left_out_bytes,
                media: u32::try_from(media).unwrap_or(u32::MAX),
            })
        });
    }

    fn on_transition(&self, caller: &Caller, record: &TransitionRecord, in_state: Duration) {
        self.inner.on_transition(caller, record, in_state);
        if record.phase == Phase::Planning && caller.subagent.is_empty() {
            self.emit(caller, EventKind::AgentThinking, || {
                Payload::AgentThinking(AgentThinking {
                    turn: caller.turn,
                    phase: record.phase.word().to_owned(),
                    iteration: record.iteration,
                })
            });
        }
    }

    fn wants_layer_times(&self) -> bool {
        self.bus.is_watched(EventKind::ToolComplete) || self.inner.wants_layer_times()
    }

    fn on_tool_request(&self, caller: &Caller, call: &agent::ToolCall) {
        self.inner.on_tool_request(caller, call);
        self.emit(caller, EventKind::ToolExecute, || {
            let (arguments, left_out_bytes) = excerpt(&call.arguments);
            Payload::ToolExecute(ToolExecute {
                turn: caller.turn,
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                plugin: call.plugin.clone(),
                action: call.action.clone(),
                arguments,
                left_out_bytes,
                subagent: caller.subagent.clone(),
            })
        });
    }

    fn on_tool_call(&self, caller: &Caller, call: &FinishedCall<'_>) {
        self.inner.on_tool_call(caller, call);
        self.emit(caller, EventKind::ToolComplete, || {
            Payload::ToolComplete(ToolComplete {
                turn: caller.turn,
                call_id: call.call_id.to_owned(),
                tool: call.tool.to_owned(),
                plugin: call.plugin.to_owned(),
                action: call.action.to_owned(),
                subagent: caller.subagent.clone(),
                outcome: outcome(call.outcome).to_owned(),
                reason: call.guard.reason.clone(),
                duration_ms: milliseconds(call.latency),
                truncated: call.truncated,
                layers: call.guard.layers.clone(),
            })
        });
        self.emit_guard(caller, call);
    }

    fn on_turn_end(&self, caller: &Caller, end: &TurnEnd) {
        self.inner.on_turn_end(caller, end);
        match (&end.outcome, caller.subagent.as_str()) {
            (Ok(answer), "") => {
                self.emit(caller, EventKind::MessageOutbound, || {
                    let (text, left_out_bytes) = excerpt(answer);
                    Payload::MessageOutbound(MessageOutbound {
                        turn: caller.turn,
                        channel: caller.channel.clone(),
                        text,
                        left_out_bytes,
                        model: end.model.clone().unwrap_or_default(),
                    })
                });
            }
            (Err((word, sentence)), subagent) if !subagent.is_empty() && word != CANCELLED => {
                self.emit(caller, EventKind::TaskFailed, || {
                    Payload::TaskFailed(TaskUpdate {
                        subagent: subagent.to_owned(),
                        attempt: 1,
                        reason: excerpt(sentence).0,
                        ..TaskUpdate::default()
                    })
                });
            }
            _ => {}
        }
    }
}

fn outcome(ran: CallOutcome) -> &'static str {
    match ran {
        CallOutcome::Succeeded => "succeeded",
        CallOutcome::Failed => "failed",
        CallOutcome::NotOffered => "not_offered",
        CallOutcome::OverTheLimit => "over_the_limit",
        CallOutcome::HandedOver => "handed_over",
    }
}

#[cfg(test)]
#[path = "turn_observer_tests.rs"]
mod tests;
