//! Selects the answer that matches a transcript.

use regex::Regex;

use super::file::MatchCondition;
use crate::model::{Message, NOTE_BEGINS, Request, ToolCall};

/// The position of a transcript.
pub(super) struct TranscriptPosition<'r> {
    pub(super) turn: usize,
    pub(super) step: usize,
    pub(super) user: &'r str,
    /// The results of this turn: tool and text.
    results: Vec<(&'r str, &'r str)>,
    request: &'r Request,
}

impl<'r> TranscriptPosition<'r> {
    pub(super) fn of(request: &'r Request) -> Self {
        let mut place = Self { turn: 0, step: 1, user: "", results: Vec::new(), request };
        let mut calls: Vec<&ToolCall> = Vec::new();
        for message in &request.messages {
            match message {
                Message::System { .. } | Message::Images { .. } => {}
                // A turn starts with a person's message.
                Message::User { text } if text.starts_with(NOTE_BEGINS) => {}
                Message::User { text } => {
                    place.turn += 1;
                    place.step = 1;
                    place.user = text;
                    place.results.clear();
                }
                Message::Assistant { calls: made, .. } => {
                    place.step += 1;
                    calls.extend(made);
                }
                Message::Tool { call_id, content, .. } => {
                    let call = calls.iter().rev().find(|call| call.id == *call_id);
                    place.results.push((call.map_or("", |call| call.name.as_str()), content));
                }
            }
        }
        place
    }

    /// The last result of this turn.
    pub(super) fn result(&self) -> &'r str {
        self.results.last().map_or("", |(_, text)| text)
    }
}

/// A compiled condition.
pub(super) struct Pattern {
    when: MatchCondition,
    user: Option<Regex>,
    result: Option<Regex>,
}

impl Pattern {
    pub(super) fn new(when: &MatchCondition) -> Result<Self, regex::Error> {
        let compiled = |text: &Option<String>| text.as_deref().map(Regex::new).transpose();
        Ok(Self { user: compiled(&when.user)?, result: compiled(&when.result)?, when: when.clone() })
    }

    pub(super) fn fits(&self, place: &TranscriptPosition<'_>) -> bool {
        let MatchCondition { turn, step, results, tool, model, .. } = &self.when;
        turn.is_none_or(|turn| turn == place.turn)
            && step.is_none_or(|step| step == place.step)
            && self.user.as_ref().is_none_or(|user| user.is_match(place.user))
            && results.iter().all(|tool| place.results.iter().any(|(name, _)| name == tool))
            && self
                .result
                .as_ref()
                .is_none_or(|result| !place.results.is_empty() && result.is_match(place.result()))
            && tool
                .as_ref()
                .is_none_or(|tool| place.request.tools.iter().any(|offered| offered.name == *tool))
            && model.as_ref().is_none_or(|model| *model == place.request.model)
    }
}
