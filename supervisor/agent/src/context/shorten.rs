//! Shortens results of tools.

use sha2::{Digest as _, Sha256};
use talon_guard::{Sanitizer, Wrapped};
use talon_llm::model::Message;

use super::units::Unit;
use crate::tokens::{TokenCounter, cut, shares};

/// The beginning of the handles of results: it tells them from the supervisor's.
const HANDLE_BEGINS: &str = "result-";
/// The digits of a handle. 48 bits: a session has thousands of results, and a handle reaches no other
/// session.
const HANDLE_DIGITS: usize = 12;

/// The handle of a result, under which the model reads on in it. It follows from the text, so that the same
/// result has the same handle in each question.
#[must_use]
pub fn handle(content: &str) -> String {
    let digest = hex::encode(Sha256::digest(content));
    format!("{HANDLE_BEGINS}{}", &digest[..HANDLE_DIGITS])
}

/// Whether a handle is one of these.
#[must_use]
pub fn is_handle(handle: &str) -> bool {
    handle.starts_with(HANDLE_BEGINS)
}

/// Cuts results, and counts what it cut.
pub(super) struct Cutter<'c> {
    pub(super) counter: &'c dyn TokenCounter,
    pub(super) sanitizer: &'c Sanitizer,
    /// Results that were cut.
    pub(super) cut: usize,
    /// Tokens left out.
    pub(super) left_out: usize,
}

impl<'c> Cutter<'c> {
    pub(super) fn new(counter: &'c dyn TokenCounter, sanitizer: &'c Sanitizer) -> Self {
        Self { counter, sanitizer, cut: 0, left_out: 0 }
    }

    /// Shortens each result of a unit to so many tokens.
    pub(super) fn shorten(&mut self, unit: &Unit, tokens: usize) -> Unit {
        let mut unit = unit.clone();
        for message in &mut unit.messages {
            self.result(message, tokens);
        }
        unit
    }

    /// Shortens the results of one answer to a budget, the longest first. Returns their tokens.
    pub(super) fn share(&mut self, messages: &mut [Message], budget: usize, min_result: usize) -> usize {
        let sizes = self.sizes(messages);
        let mut shares = shares(&sizes, budget).into_iter();
        for message in messages.iter_mut().filter(|message| is_result(message)) {
            self.result(message, shares.next().unwrap_or_default().max(min_result));
        }
        self.sizes(messages).into_iter().sum()
    }

    /// The tokens of each result.
    pub(super) fn sizes(&self, messages: &[Message]) -> Vec<usize> {
        let size = |message: &Message| match message {
            Message::Tool { content, .. } => Some(self.counter.count(content)),
            _ => None,
        };
        messages.iter().filter_map(size).collect()
    }

    fn result(&mut self, message: &mut Message, tokens: usize) {
        let Message::Tool { content, .. } = message else { return };
        let whole = self.counter.count(content);
        if whole <= tokens {
            return;
        }
        let handle = handle(content);
        *content = match Wrapped::parse(content, self.sanitizer) {
            Some(block) => {
                cut::block(&block, tokens, Some(&handle), self.counter, self.sanitizer).into_string()
            }
            None => cut::plain(content, tokens, self.counter),
        };
        self.cut += 1;
        self.left_out += whole.saturating_sub(self.counter.count(content));
    }
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::Tool { .. })
}
