//! What is recorded of a turn, for JSON output and for the footer.

use talon_proto::agent::{Approval, Done, Error, Plan, SubagentResult, ToolCall, ToolResult, chunk};

use super::typed_line::TypedAhead;
use crate::failure::Failure;

/// Tool calls, notices etc. recorded per turn; beyond this only the agent counts them. The limits of a turn
/// allow about a hundred tool calls.
const MAX_RECORDED: usize = 1000;
/// Bytes of the streamed text that are recorded, to decide whether the answer was streamed.
const MAX_STREAMED_BYTES: usize = 1 << 20;

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    Done(Box<Done>),
    Error(Box<Error>),
    /// The turn could not be followed.
    Failed(Failure),
    /// The turn was cancelled, and its end did not arrive in time.
    Stopped,
    /// The turn waits for an approval and continues once it is granted.
    Parked(Box<Approval>),
}

/// Why this client cancelled the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    Interrupted,
    TimedOut,
}

#[derive(Debug)]
pub(crate) struct ToolCallRecord {
    pub(crate) call: ToolCall,
    pub(crate) result: Option<ToolResult>,
}

/// The outcome of a turn that was followed.
#[derive(Debug)]
pub(crate) struct TurnOutcome {
    pub(crate) record: TurnRecord,
    pub(crate) stop: Option<StopReason>,
    pub(crate) end: TurnEnd,
    /// What the person typed meanwhile.
    pub(crate) typed: TypedAhead,
}

/// What the chunks of a turn reported.
#[derive(Debug, Default)]
pub(crate) struct TurnRecord {
    pub(crate) session_id: String,
    pub(crate) turn: u64,
    pub(crate) correlation_id: String,
    pub(crate) calls: Vec<ToolCallRecord>,
    pub(crate) subagents: Vec<SubagentResult>,
    pub(crate) notices: Vec<String>,
    pub(crate) approvals: Vec<Approval>,
    /// The session's plan as it was changed last.
    pub(crate) plan: Option<Plan>,
    /// Text since the last tool call.
    pub(crate) streamed: String,
}

impl TurnRecord {
    pub(super) fn add_chunk(&mut self, kind: &chunk::Kind) {
        match kind {
            chunk::Kind::Started(started) => {
                self.session_id.clone_from(&started.session_id);
                self.turn = started.turn;
                self.correlation_id.clone_from(&started.correlation_id);
            }
            chunk::Kind::Loop(state) if self.session_id.is_empty() => {
                self.session_id.clone_from(&state.session_id);
            }
            chunk::Kind::Text(text) if self.streamed.len() < MAX_STREAMED_BYTES => {
                self.streamed.push_str(&text.text);
            }
            chunk::Kind::ToolCall(call) => {
                self.streamed.clear();
                // After a reconnect the agent repeats the calls in progress.
                let told = |one: &ToolCallRecord| one.result.is_none() && one.call == *call;
                if !self.calls.iter().any(told) {
                    push_bounded(&mut self.calls, ToolCallRecord { call: call.clone(), result: None });
                }
            }
            chunk::Kind::ToolResult(result) => {
                let waits =
                    |call: &&mut ToolCallRecord| call.result.is_none() && call.call.call_id == result.call_id;
                if let Some(call) = self.calls.iter_mut().find(waits) {
                    call.result = Some(result.clone());
                }
            }
            chunk::Kind::Plan(plan) => self.plan = Some(plan.clone()),
            chunk::Kind::SubagentResult(result) => push_bounded(&mut self.subagents, result.clone()),
            chunk::Kind::Notice(notice) => {
                if notice.discard_text {
                    self.streamed.clear();
                }
                push_bounded(&mut self.notices, notice.text.clone());
            }
            chunk::Kind::Approval(approval) => {
                match self.approvals.iter_mut().find(|known| known.id == approval.id) {
                    Some(known) => known.clone_from(approval),
                    None => push_bounded(&mut self.approvals, approval.clone()),
                }
            }
            _ => {}
        }
    }

    /// Whether the chunk was already recorded: after a reconnect the agent repeats pending approvals.
    pub(super) fn is_known(&self, kind: &chunk::Kind) -> bool {
        matches!(kind, chunk::Kind::Approval(approval) if self.approvals.contains(approval))
    }

    /// Whether the answer was already streamed.
    pub(super) fn has_streamed(&self, answer: &str) -> bool {
        self.streamed.len() >= MAX_STREAMED_BYTES || self.streamed.trim_end().ends_with(answer.trim())
    }
}

fn push_bounded<T>(all: &mut Vec<T>, one: T) {
    if all.len() < MAX_RECORDED {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::{Notice, Text};

    use super::*;

    fn text(text: &str) -> chunk::Kind {
        chunk::Kind::Text(Text { text: text.into(), ..Text::default() })
    }

    #[test]
    fn the_answer_is_what_was_said_since_the_last_call() {
        let mut heard = TurnRecord::default();
        heard.add_chunk(&text("I will look."));
        heard.add_chunk(&chunk::Kind::ToolCall(ToolCall { call_id: "1".into(), ..ToolCall::default() }));
        assert!(!heard.has_streamed("I will look."));
        heard.add_chunk(&text("half"));
        heard.add_chunk(&chunk::Kind::Notice(Notice { discard_text: true, ..Notice::default() }));
        heard.add_chunk(&text("It is "));
        heard.add_chunk(&text("there.\n"));
        assert!(heard.has_streamed("It is there."));
        heard
            .add_chunk(&chunk::Kind::ToolResult(ToolResult { call_id: "1".into(), ..ToolResult::default() }));
        assert!(heard.calls[0].result.is_some());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut heard = TurnRecord::default();
        for call in 0..MAX_RECORDED + 5 {
            // Twice each, as after a connection that was made again.
            let call = ToolCall { call_id: call.to_string(), ..ToolCall::default() };
            heard.add_chunk(&chunk::Kind::ToolCall(call.clone()));
            heard.add_chunk(&chunk::Kind::ToolCall(call));
            assert!(heard.calls.len() <= MAX_RECORDED);
        }
        assert_eq!(heard.calls.len(), MAX_RECORDED);
    }
}
