//! A session's messages as the durable events that clients follow.
//!
//! Events are not stored: each follows from a message and from the messages before it, so the journal stays the one
//! record of what happened. Its sequence is that of its message, with room for the events of one message between two.

use std::collections::{BTreeMap, BTreeSet};

use talon_proto::agent::event::Kind;
use talon_proto::agent::{self, Event};
use talon_store::{Message, Role, Session};

use super::client_view::{media_of, wire_call};
use super::fact::decode_approval;
use super::record::EntryMetadata;
use super::{SessionFact, TurnOptions, TurnTotals};
use crate::hooks::AnswerVerdicts;
use crate::tool_result::{CallOutcome, Provenance};

/// How many sequences of events one message has. 1024: an answer is as many events as it has calls, with its text and
/// its thoughts, and the results of 256 calls are the most that are stored at once. Part of the wire contract: clients
/// keep sequences.
pub const EVENTS_PER_MESSAGE: u64 = 1024;
const MOST_EVENTS: usize = 1024;

/// The tool by which a model starts a sub-agent.
const SUBAGENT_TOOL: &str = "subagent__run";

/// Makes events of a session's messages, which have to come in the order of writing.
#[derive(Debug, Clone, Default)]
pub struct EventTranslator {
    /// Whether the session had a message of a person before.
    is_begun: bool,
    /// Whether it is idle.
    is_idle: bool,
    /// The turn whose message was told before its hooks saw it.
    received: Option<u64>,
    /// Calls of the last answer that has any.
    calls: Vec<KnownCall>,
    /// Those of them that began, and those whose result was told.
    begun: BTreeSet<usize>,
    told: BTreeSet<usize>,
    /// What became of approvals of the turn, by the calls' ids.
    confirmations: BTreeMap<String, String>,
    /// Whether the last answer waits for its hooks.
    withheld: bool,
}

/// What later messages need of a call.
#[derive(Debug, Clone)]
struct KnownCall {
    id: String,
    tool: String,
    /// Agent and task, of a call that starts a sub-agent.
    subagent: Option<(String, String)>,
}

/// How much of a sub-agent's task is told; its call has all of it.
const MAX_TASK_BYTES: usize = 500;

impl EventTranslator {
    /// Whether everything before is known, wherever the messages that it was given began.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        self.is_begun
    }

    /// The events of the next message.
    pub fn events(&mut self, session: &Session, message: &Message) -> Vec<Event> {
        let mut told = MessageEvents { turn: 0, kinds: Vec::new() };
        match EntryMetadata::of(message) {
            None => self.foreign(session, message, &mut told),
            Some(metadata) => self.entry(session, message, metadata, &mut told),
        }
        let MessageEvents { turn, kinds } = told;
        let numbered = (message.sequence * EVENTS_PER_MESSAGE..).zip(kinds).take(MOST_EVENTS);
        let event = |(sequence, kind)| Event {
            session_id: session.id.to_string(),
            sequence,
            unix_ms: message.at.as_millis().unsigned_abs(),
            turn,
            kind: Some(kind),
        };
        numbered.map(event).collect()
    }

    fn entry(
        &mut self,
        session: &Session,
        message: &Message,
        metadata: EntryMetadata,
        told: &mut MessageEvents,
    ) {
        let content = || message.content.clone();
        match metadata {
            EntryMetadata::Received { turn, message: text, with } => {
                told.turn = turn;
                self.request(session, text, *with, told);
                self.received = Some(turn);
            }
            EntryMetadata::Asked { turn, with } => {
                told.turn = turn;
                if self.received.take() != Some(turn) {
                    let original = with.hooks.as_ref().and_then(|hooks| hooks.original.clone());
                    self.request(session, original.unwrap_or_else(content), *with, told);
                }
            }
            EntryMetadata::Answered { turn, calls, model, withheld, thinking, .. } => {
                told.turn = turn;
                if !thinking.is_empty() {
                    told.add(Kind::Thought(agent::Thinking { text: thinking }));
                }
                self.withheld = withheld.is_some();
                if !message.content.trim().is_empty() {
                    told.add(Kind::Answer(agent::AnswerText { text: content(), model, replaces: false }));
                }
                if calls.is_empty() {
                    return;
                }
                (self.begun, self.told) = (BTreeSet::new(), BTreeSet::new());
                self.calls.clear();
                for call in &calls {
                    let wire = wire_call(call);
                    self.calls.push(KnownCall::of(&wire));
                    told.add(Kind::ToolCall(wire));
                }
            }
            EntryMetadata::Hooked { turn, verdicts } => {
                told.turn = turn;
                self.hooked(content(), &verdicts, told);
            }
            EntryMetadata::Began { turn, place } => {
                told.turn = turn;
                self.call_begun(place, told);
            }
            EntryMetadata::Brought { turn, place, ran, said, provenance }
            | EntryMetadata::Executed { turn, place, ran, said, provenance, .. } => {
                told.turn = turn;
                self.result(place, ran, content(), &said, *provenance, told);
            }
            EntryMetadata::Noted { turn, feedback: false } => {
                told.turn = turn;
                let (level, text) = ("info".to_owned(), content());
                told.add(Kind::Notice(agent::Notice { level, text, discard_text: false }));
            }
            // What is told a model of its own answer, and that a plugin's question waits: its approval says that.
            EntryMetadata::Noted { feedback: true, .. } | EntryMetadata::Parked { .. } => {}
            EntryMetadata::Ended { turn, reason, partial, totals, .. } => {
                told.turn = turn;
                self.confirmations.clear();
                self.withheld = false;
                told.add(end(reason, content(), partial, totals.map(|totals| *totals).unwrap_or_default()));
            }
            EntryMetadata::Undone { from, .. } => {
                told.add(Kind::TurnsUndone(agent::TurnsUndone { from }));
            }
            EntryMetadata::Summary { messages, .. } => {
                told.add(Kind::SessionCompacted(agent::SessionCompacted { summary: content(), messages }));
            }
            EntryMetadata::Happened { fact } => self.fact(fact, told),
        }
    }

    /// A message of an imported session.
    fn foreign(&mut self, session: &Session, message: &Message, told: &mut MessageEvents) {
        let text = message.content.clone();
        match message.role {
            Role::User => self.request(session, text, TurnOptions::default(), told),
            Role::Assistant => {
                let (model, replaces) = (String::new(), false);
                told.add(Kind::Answer(agent::AnswerText { text, model, replaces }));
                told.add(Kind::Done(agent::Done::default()));
            }
            Role::System if message.summarizes.is_some() => {
                told.add(Kind::SessionCompacted(agent::SessionCompacted { summary: text, messages: 0 }));
            }
            Role::System | Role::Tool => {}
        }
    }

    fn request(&mut self, session: &Session, text: String, with: TurnOptions, told: &mut MessageEvents) {
        if !std::mem::replace(&mut self.is_begun, true) {
            told.add(Kind::SessionCreated(agent::SessionCreated {
                sender: session.sender.clone(),
                channel: session.channel.clone(),
                created_unix_ms: session.created_at.as_millis().unsigned_abs(),
            }));
        }
        self.use_again(told);
        (self.received, self.withheld) = (None, false);
        self.confirmations.clear();
        self.calls.clear();
        let media = media_of(&with);
        let TurnOptions { client_id, channel, sender_name, .. } = with;
        told.add(Kind::Message(agent::MessageReceived {
            text,
            channel: if channel.is_empty() { session.channel.clone() } else { channel },
            sender: session.sender.clone(),
            sender_name,
            client_id,
            media,
        }));
    }

    fn use_again(&mut self, told: &mut MessageEvents) {
        if std::mem::take(&mut self.is_idle) {
            told.add(Kind::SessionResumed(agent::SessionResumed {}));
        }
    }

    /// People see of an answer what its hooks let through.
    fn hooked(&mut self, text: String, verdicts: &AnswerVerdicts, told: &mut MessageEvents) {
        let withheld = std::mem::take(&mut self.withheld);
        if verdicts.end.is_none() && (withheld || verdicts.replaced) {
            let (model, replaces) = (String::new(), !withheld);
            told.add(Kind::Answer(agent::AnswerText { text, model, replaces }));
        }
    }

    fn call_begun(&mut self, place: usize, told: &mut MessageEvents) {
        // One that goes on after a restart begins a second time.
        if !self.begun.insert(place) {
            return;
        }
        let Some(KnownCall { id, subagent: Some((agent, task)), .. }) = self.calls.get(place) else { return };
        let (agent, task, call_id) = (agent.clone(), task.clone(), id.clone());
        told.add(Kind::SubagentStart(agent::SubagentStart { agent, task, call_id }));
    }

    fn result(
        &mut self,
        place: usize,
        ran: CallOutcome,
        output: String,
        said: &str,
        provenance: Provenance,
        told: &mut MessageEvents,
    ) {
        // It came early, and comes again with all others.
        if !self.told.insert(place) {
            return;
        }
        let unknown = || KnownCall { id: String::new(), tool: String::new(), subagent: None };
        let KnownCall { id: call_id, tool, subagent } =
            self.calls.get(place).cloned().unwrap_or_else(unknown);
        if let Some((agent, _)) = subagent.filter(|_| self.begun.contains(&place)) {
            let result = subagent_result(agent, &call_id, ran, &output, said, provenance.duration_ms);
            told.add(Kind::SubagentResult(result));
        }
        told.add(Kind::ToolResult(agent::ToolResult {
            confirmation: self.confirmations.get(&call_id).cloned().unwrap_or_default(),
            call_id,
            tool,
            success: ran == CallOutcome::Succeeded,
            output,
            duration_ms: provenance.duration_ms,
            truncated: provenance.truncated,
            // Hex that the journal did not write is no receipt.
            receipt: hex::decode(&provenance.receipt).unwrap_or_default(),
            arguments: provenance.arguments,
        }));
    }

    fn fact(&mut self, fact: SessionFact, told: &mut MessageEvents) {
        match fact {
            SessionFact::Approval { turn, approval } => {
                let Some(approval) = decode_approval(&approval) else { return };
                told.turn = turn;
                if approval.state != "pending" && approval.question.is_empty() {
                    self.confirmations.insert(approval.call_id.clone(), approval.state.clone());
                }
                told.add(Kind::Approval(approval));
            }
            SessionFact::Idle => {
                self.is_idle = true;
                told.add(Kind::SessionIdle(agent::SessionIdle {}));
            }
            // The message that it became a part of was told.
            SessionFact::Merged { .. } => {}
            SessionFact::Resumed => self.use_again(told),
            SessionFact::Updated { fields } => {
                told.add(Kind::SessionUpdated(agent::SessionUpdated { fields }));
            }
        }
    }
}

/// The events of one message.
struct MessageEvents {
    turn: u64,
    kinds: Vec<Kind>,
}

impl MessageEvents {
    fn add(&mut self, kind: Kind) {
        self.kinds.push(kind);
    }
}

impl KnownCall {
    fn of(call: &agent::ToolCall) -> Self {
        let arguments = || serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap_or_default();
        let subagent = (call.tool == SUBAGENT_TOOL).then(|| {
            let arguments = arguments();
            let text = |name: &str| arguments[name].as_str().unwrap_or_default().trim().to_owned();
            let mut task = text("task");
            task.truncate(task.floor_char_boundary(MAX_TASK_BYTES));
            (text("agent"), task)
        });
        Self { id: call.call_id.clone(), tool: call.tool.clone(), subagent }
    }
}

/// What a sub-agent brought, by the block that the model got: `{agent, result, tokens_used, cost, duration_ms}`. A block
/// that was cut off has no result that could be read; the call's own result has what there is.
fn subagent_result(
    agent: String,
    call_id: &str,
    ran: CallOutcome,
    block: &str,
    said: &str,
    duration_ms: u64,
) -> agent::SubagentResult {
    let within = block.find('{').zip(block.rfind('}')).and_then(|(from, to)| block.get(from..=to));
    let json: Option<serde_json::Value> = within.and_then(|json| serde_json::from_str(json).ok());
    let number = |name: &str| json.as_ref().and_then(|json| json[name].as_u64()).unwrap_or_default();
    let failed = ran != CallOutcome::Succeeded;
    agent::SubagentResult {
        agent,
        call_id: call_id.to_owned(),
        result: json.as_ref().map(|json| json["result"].to_string()).filter(|_| !failed).unwrap_or_default(),
        error: if failed { said.trim_matches('\0').to_owned() } else { String::new() },
        tokens: number("tokens_used"),
        duration_ms: if duration_ms > 0 { duration_ms } else { number("duration_ms") },
        ..agent::SubagentResult::default()
    }
}

fn end(reason: String, message: String, partial: String, totals: TurnTotals) -> Kind {
    let TurnTotals { usage, provider, model, iteration, cost_pico_usd, duration_ms, tool_calls, finish } =
        totals;
    let usage = Some(agent::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        thinking_tokens: usage.thinking_tokens,
        cache_written_tokens: usage.cache_written_tokens,
    });
    if reason != "done" {
        return Kind::Error(agent::Error {
            reason,
            message,
            partial,
            usage,
            cost_pico_usd,
            iteration,
            duration_ms,
            finish,
            ..agent::Error::default()
        });
    }
    Kind::Done(agent::Done {
        usage,
        provider,
        model,
        iteration,
        cost_pico_usd,
        duration_ms,
        tool_calls,
        finish,
        ..agent::Done::default()
    })
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
