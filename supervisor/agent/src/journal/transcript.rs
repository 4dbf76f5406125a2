//! The model's view of a turn's entries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use talon_llm::model::{Message, ToolCall};

use super::{JournalEntry, TurnOutcome};
use crate::context::HistoryMessage;
use crate::hooks::HookedAnswer;
use crate::media::introduction;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};
use crate::tools;

/// The result of a call that started and whose result is lost. It is not repeated, since it may have
/// succeeded.
pub const UNKNOWN: &str = "error: the agent was interrupted during this call, and it is not known what the call did; look before it is repeated";
/// The result of a call that never started.
const NOT_MADE: &str = "error: not made, the turn was interrupted before";

/// Builds messages from entries. The driver applies entries as they happen, and a journal applies them as it
/// reads them; the messages are the same.
///
/// - A call without a result gets one that says so as soon as the next message follows.
/// - Feedback replaces the previous feedback and the answer to which it belongs: the model sees only its
///   latest attempt.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    messages: Vec<HistoryMessage>,
    /// Calls that have no results yet.
    open: Option<OpenExchange>,
    /// The index of the last feedback, and of the answer to which it belongs.
    feedback: Option<Range<usize>>,
    /// Whether the last message is an answer that waits for its hooks.
    withheld: bool,
}

#[derive(Debug, Clone)]
struct OpenExchange {
    turn: u64,
    calls: Vec<ToolCall>,
    began: BTreeSet<usize>,
    brought: BTreeMap<usize, ToolResult>,
}

impl OpenExchange {
    fn results(mut self) -> Vec<ToolResult> {
        let missing = |place| if self.began.contains(&place) { UNKNOWN } else { NOT_MADE };
        let mut results = Vec::new();
        for place in 0..self.calls.len() {
            let lost = || ToolResult {
                outcome: CallOutcome::Failed,
                block: missing(place).to_owned(),
                output: missing(place).to_owned(),
                provenance: Provenance::default(),
            };
            results.push(self.brought.remove(&place).unwrap_or_else(lost));
        }
        results
    }
}

/// A message with the name of who speaks, where several people share a session. The name is data as the message is, and
/// one line.
fn spoken(sender_name: &str, text: &str) -> String {
    if sender_name.is_empty() { text.to_owned() } else { format!("[From {sender_name}]\n{text}") }
}

impl Transcript {
    /// Starts with earlier messages.
    #[must_use]
    pub fn after(past: Vec<HistoryMessage>) -> Self {
        Self { messages: past, ..Self::default() }
    }

    /// All messages; calls of the last one may have no results yet.
    #[must_use]
    pub fn messages(&self) -> &[HistoryMessage] {
        &self.messages
    }

    /// All messages, each call with its result.
    #[must_use]
    pub fn finish(mut self) -> Vec<HistoryMessage> {
        self.close(None);
        self.messages
    }

    /// Adds messages of a turn that are in no journal: a client keeps them.
    pub fn add(&mut self, turn: u64, messages: impl IntoIterator<Item = Message>) {
        self.close(None);
        self.messages.extend(messages.into_iter().map(|message| HistoryMessage { turn, message }));
    }

    /// Applies an entry.
    pub fn apply(&mut self, turn: u64, entry: &JournalEntry) {
        match entry {
            JournalEntry::CallStarted { place } => {
                if let Some(open) = &mut self.open {
                    open.began.insert(*place);
                }
                return;
            }
            // The model sees a call and its result, and nothing between.
            JournalEntry::CallParked { .. } => return,
            JournalEntry::CallFinished { place, result } => {
                if let Some(open) = &mut self.open {
                    open.brought.insert(*place, result.clone());
                }
                return;
            }
            JournalEntry::CallsFinished(results) => return self.close(Some(results)),
            JournalEntry::Asked { .. }
            | JournalEntry::Answered { .. }
            | JournalEntry::AnswerHooked(_)
            | JournalEntry::Noted { .. }
            | JournalEntry::Ended(_) => {}
            // Its hooks have not seen it; and the log leaves out what was undone.
            JournalEntry::Received { .. } | JournalEntry::Undone { .. } => return,
        }
        self.close(None);
        match entry {
            // It reached no model, and never will.
            JournalEntry::Asked { with, .. }
                if with.hooks.as_ref().is_some_and(|hooks| hooks.end.is_some()) =>
            {
                self.drop_withheld();
            }
            JournalEntry::Asked { text, with } => {
                self.feedback = None;
                self.drop_withheld();
                self.say(turn, Message::User { text: spoken(&with.sender_name, text) });
                if !with.images.is_empty() {
                    let (introduction, images) = (String::new(), with.images.clone());
                    self.say(turn, Message::Images { introduction, images });
                }
                if !with.attachments.is_empty() {
                    let text = introduction(&with.attachments, &tools::read_attachment_tool());
                    self.say(turn, Message::User { text });
                }
            }
            JournalEntry::Answered { answer, withheld, .. } => {
                // An empty message is dropped, since several providers reject it.
                if !(answer.text.trim().is_empty() && answer.calls.is_empty()) {
                    self.say(turn, answer.message());
                    self.withheld = *withheld && answer.calls.is_empty();
                }
                if !answer.calls.is_empty() {
                    let (began, brought) = (BTreeSet::new(), BTreeMap::new());
                    self.open = Some(OpenExchange { turn, calls: answer.calls.clone(), began, brought });
                }
            }
            JournalEntry::AnswerHooked(hooked) => self.hook_answer(turn, hooked),
            JournalEntry::Noted { text, feedback: true } => self.feed_back(turn, text),
            JournalEntry::Noted { text, feedback: false } => {
                self.say(turn, Message::User { text: text.clone() })
            }
            JournalEntry::Ended(TurnOutcome { partial, note, .. }) => {
                self.feedback = None;
                self.drop_withheld();
                if !partial.trim().is_empty() {
                    let (calls, thoughts) = (Vec::new(), None);
                    self.say(turn, Message::Assistant { text: partial.clone(), calls, thoughts });
                }
                if !note.is_empty() {
                    self.say(turn, Message::User { text: note.clone() });
                }
            }
            JournalEntry::CallStarted { .. }
            | JournalEntry::CallParked { .. }
            | JournalEntry::CallFinished { .. }
            | JournalEntry::CallsFinished(_)
            | JournalEntry::Received { .. }
            | JournalEntry::Undone { .. } => {}
        }
    }

    /// Removes messages that are summarized.
    pub fn forget(&mut self, range: Range<usize>) {
        let range = range.start.min(self.messages.len())..range.end.min(self.messages.len());
        self.feedback = self.feedback.take().and_then(|feedback| {
            if feedback.start >= range.end {
                Some(feedback.start - range.len()..feedback.end - range.len())
            } else {
                (feedback.end <= range.start).then_some(feedback)
            }
        });
        self.withheld &= range.end < self.messages.len();
        self.messages.drain(range);
    }

    /// A model sees of its answers what the person got.
    fn hook_answer(&mut self, turn: u64, hooked: &HookedAnswer) {
        self.withheld = false;
        if hooked.verdicts.end.is_none() && !hooked.verdicts.replaced {
            return;
        }
        let is_answer = |past: &HistoryMessage| {
            past.turn == turn && matches!(&past.message, Message::Assistant { calls, .. } if calls.is_empty())
        };
        if self.messages.last().is_some_and(is_answer) {
            self.messages.pop();
        }
        if hooked.verdicts.end.is_none() {
            let (calls, thoughts) = (Vec::new(), None);
            self.say(turn, Message::Assistant { text: hooked.text.clone(), calls, thoughts });
        }
    }

    /// Removes an answer that no hook has seen: the turn was ended before.
    fn drop_withheld(&mut self) {
        if std::mem::take(&mut self.withheld) {
            self.messages.pop();
        }
    }

    fn say(&mut self, turn: u64, message: Message) {
        self.withheld = false;
        self.messages.push(HistoryMessage { turn, message });
    }

    fn feed_back(&mut self, turn: u64, text: &str) {
        if let Some(before) = self.feedback.take() {
            self.messages.drain(before);
        }
        let is_answer = |past: &HistoryMessage| {
            past.turn == turn && matches!(&past.message, Message::Assistant { calls, .. } if calls.is_empty())
        };
        let at = self.messages.len();
        let about = if self.messages.last().is_some_and(is_answer) { at - 1 } else { at };
        self.say(turn, Message::User { text: text.to_owned() });
        self.feedback = Some(about..at + 1);
    }

    fn close(&mut self, results: Option<&[ToolResult]>) {
        let Some(mut open) = self.open.take() else { return };
        for (place, result) in results.unwrap_or_default().iter().enumerate() {
            open.brought.insert(place, result.clone());
        }
        let (turn, calls) = (open.turn, open.calls.clone());
        for message in tools::messages(&calls, &open.results()) {
            self.say(turn, message);
        }
    }
}
