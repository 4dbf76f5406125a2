//! What a client brings to a turn: tools of its own, whose calls it makes, and a conversation that it keeps.
//!
//! A turn ends where the model calls such a tool. The server's calls of the same answer are made first, and so the client gets its own
//! calls under ids that are issued here. What the turn did besides is kept for the next request ([`HandedOverCalls`]).

use std::mem;

use talon_llm::model::{Answer, Arguments, Finish, Message, ToolCall, ToolChoice, ToolSpec};
use talon_proto::agent::ClientCall;
use ulid::Ulid;

use super::TurnEnd;
use super::client_side::{HandedOverCalls, ISSUED, KEEPING};
use super::drive::TurnRun;
use crate::answer::FinalAnswer;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// The result of a call that the client makes, until the client brings it.
const HANDED_OVER: &str = "[The client makes this call. Its result follows in the next message of the user.]";

impl TurnRun<'_> {
    /// Begins with the conversation that the client keeps.
    pub(super) fn take_client_past(&mut self) {
        let turn = self.spec.caller.turn;
        if let Some(client) = &mut self.spec.client {
            for past in mem::take(&mut client.past) {
                self.transcript.add(past.turn.min(turn), [past.message]);
            }
        }
    }

    /// Adds what followed the request already.
    pub(super) fn add_client_exchanges(&mut self) {
        let turn = self.spec.caller.turn;
        if let Some(client) = &mut self.spec.client {
            self.transcript.add(turn, mem::take(&mut client.exchanges));
        }
        self.known_to_client = self.messages_of_turn().count();
    }

    /// The client's tools on offer.
    pub(super) fn client_tools(&self) -> Vec<(ToolSpec, bool)> {
        self.spec.client.as_ref().map(|client| client.tools.clone()).unwrap_or_default()
    }

    /// Which tools the next question leaves the model. What has to be called is asked for once.
    pub(super) fn tool_choice(&self) -> ToolChoice {
        if self.is_last_question() {
            return ToolChoice::None;
        }
        match &self.spec.client {
            Some(client) if self.turn.context().iteration() == 0 => client.choice.clone(),
            _ => ToolChoice::Auto,
        }
    }

    /// Gives the calls of the client's tools ids of ours.
    pub(super) fn issue_calls(&self, answer: &mut Answer) {
        let Some(client) = &self.spec.client else { return };
        let is_client = |call: &ToolCall| self.offer.get(&call.name).is_some_and(|tool| tool.is_client);
        if client.one_call
            && let Some((second, _)) =
                answer.calls.iter().enumerate().filter(|(_, call)| is_client(call)).nth(1)
        {
            answer.calls.truncate(second);
        }
        let has_more = self.turn.context().iteration() > 0
            || answer.thoughts.is_some()
            || answer.calls.iter().any(|call| !is_client(call));
        let prefix = if has_more { KEEPING } else { ISSUED };
        for call in answer.calls.iter_mut().filter(|call| is_client(call)) {
            call.id = format!("{prefix}_{}", Ulid::generate().to_string().to_ascii_lowercase());
        }
    }

    /// Whether the client set the most tokens of an answer, and wants one that ends there.
    pub(super) fn has_wanted_length(&self) -> bool {
        let ends_at_limit = self.spec.client.as_ref().is_some_and(|client| client.ends_at_limit);
        ends_at_limit && self.spec.sampling.max_tokens.is_some()
    }

    /// Texts before which an answer ends, as the client said.
    pub(super) fn stops(&self) -> &[String] {
        self.spec.client.as_ref().map_or(&[], |client| &client.stop)
    }

    /// The answer that ends where the client wanted it to end, also at its very beginning.
    pub(super) fn cut_as_wanted(&self, answer: &Answer) -> Option<FinalAnswer> {
        let text = answer.text.trim();
        let is_wanted = match answer.finish {
            Finish::Length => self.has_wanted_length(),
            Finish::Stop => text.is_empty() && !self.stops().is_empty(),
            _ => false,
        };
        is_wanted.then(|| FinalAnswer { text: text.to_owned(), value: None })
    }

    /// How the answer finished.
    pub(super) fn finish_word(&self) -> &'static str {
        let context = self.turn.context();
        match context.answer() {
            _ if context.hands_over() => "client_calls",
            Some(answer) if answer.finish == Finish::Length && self.has_wanted_length() => "length",
            _ => "stop",
        }
    }

    /// Sends the client the calls that it makes. What the model says before them is for people only if no hook has to see it first.
    pub(super) fn finish_with_client_calls(&self) -> TurnEnd {
        let context = self.turn.context();
        let text = context.answer().map(|answer| answer.text.trim().to_owned());
        let text = text.filter(|_| !self.withholds_text()).unwrap_or_default();
        let results = context.results().unwrap_or_default();
        let made = context.calls().iter().zip(results);
        let calls: Vec<ToolCall> = made
            .filter(|(_, result)| result.outcome == CallOutcome::HandedOver)
            .map(|(call, _)| call.clone())
            .collect();
        let mut end = self.finish_with(text, calls.iter().map(wire_call).collect());
        end.handed_over = Some(HandedOverCalls { messages: self.messages_for_next(&calls), calls });
        end
    }

    fn messages_of_turn(&self) -> impl Iterator<Item = &Message> {
        let turn = self.spec.caller.turn;
        self.transcript.messages().iter().filter(move |past| past.turn == turn).map(|past| &past.message)
    }

    /// What the turn added; only the last exchange if a summary took the place of others.
    fn messages_for_next(&self, handed: &[ToolCall]) -> Vec<Message> {
        let all: Vec<&Message> = self.messages_of_turn().collect();
        let makes = |message: &&Message| matches!(message, Message::Assistant { calls, .. } if calls.iter().any(|call| handed.contains(call)));
        let from = match self.summary.text.is_empty() {
            true => self.known_to_client,
            false => all.iter().rposition(makes).unwrap_or_default(),
        };
        all.into_iter().skip(from).cloned().collect()
    }
}

/// The result of a call that the client makes.
pub(super) fn handed_over() -> ToolResult {
    ToolResult {
        outcome: CallOutcome::HandedOver,
        block: HANDED_OVER.to_owned(),
        output: HANDED_OVER.to_owned(),
        provenance: Provenance::default(),
    }
}

fn wire_call(call: &ToolCall) -> ClientCall {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
        Arguments::Unreadable(text) => text.clone(),
    };
    ClientCall { id: call.id.clone(), name: call.name.clone(), arguments }
}
