//! What a piece of a turn becomes.

use talon_proto::agent;
use talon_proto::agent::chunk::Kind;

use super::ServerEvent;
use super::agent::AgentThinking;
use super::ids::session_id;
use super::translate;

/// The events of a piece of a turn of this session. `started` has none: what it says is known to whoever asked.
pub(crate) fn events(session: &str, kind: Kind) -> Vec<ServerEvent> {
    match kind {
        Kind::Started(_) => Vec::new(),
        Kind::Loop(state) => phase_events(session, state),
        Kind::Thinking(thinking) => vec![translate::thought(session, thinking)],
        Kind::Text(text) => vec![translate::text(session, text)],
        Kind::ToolCall(call) => vec![ServerEvent::ToolCall(translate::tool_call(session, call))],
        Kind::ToolProgress(progress) => vec![translate::tool_progress(session, progress)],
        Kind::ToolResult(result) => vec![ServerEvent::ToolResult(translate::tool_result(session, result))],
        Kind::Approval(approval) => vec![translate::approval(approval)],
        Kind::SubagentStart(start) => vec![translate::subagent_start(session, start)],
        Kind::SubagentResult(result) => vec![translate::subagent_result(session, result)],
        Kind::Notice(notice) => translate::notice(session, notice),
        Kind::Done(done) => vec![translate::end(session, &done)],
        Kind::Error(error) => vec![translate::error(session, error)],
        Kind::Plan(plan) => vec![translate::plan(session, plan)],
        Kind::ToolStream(stream) => vec![translate::tool_stream(session, stream)],
    }
}

/// A phase; where the model is about to be asked, also that it thinks.
fn phase_events(session: &str, state: agent::LoopState) -> Vec<ServerEvent> {
    let thinks = matches!(state.phase.as_str(), "planning" | "responding");
    let thinking =
        thinks.then(|| ServerEvent::AgentThinking(AgentThinking { session_id: session_id(session) }));
    thinking.into_iter().chain([translate::phase(session, state)]).collect()
}
