//! Puts an answer together from its pieces.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Failure;
use crate::limits::{MAX_ARGUMENTS_BYTES, MAX_CALLS, MAX_TEXT_BYTES};
use crate::model::{Answer, Arguments, Chunk, Finish, Message, Request, Thoughts, ToolCall, Usage};
use crate::provider::Hear;

/// The longest id that is taken over from a provider; others are made up. The longest in use have some 60 bytes.
const MAX_ID_BYTES: usize = 128;

/// An answer that is not whole yet.
pub(crate) struct Assembly<'h> {
    heard: &'h mut dyn Hear,
    spoke: bool,
    text: String,
    thinking_bytes: usize,
    drafts: Vec<Draft>,
    /// The draft that was written to last.
    written: usize,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: String,
    asked_model: String,
    thoughts: Option<Thoughts>,
    /// Ids that stand in the transcript, which some providers give again.
    used: HashSet<String>,
}

#[derive(Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// A piece of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fragment<'t> {
    /// The provider's number of the call. Neither dense nor in order, and some give every call the same.
    pub(crate) index: Option<u64>,
    pub(crate) id: &'t str,
    pub(crate) name: &'t str,
    pub(crate) arguments: &'t str,
}

impl<'h> Assembly<'h> {
    pub(crate) fn new(request: &Request, heard: &'h mut dyn Hear) -> Self {
        let calls = request.messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        Self {
            heard,
            spoke: false,
            text: String::new(),
            thinking_bytes: 0,
            drafts: Vec::new(),
            written: 0,
            finish: None,
            usage: None,
            model: String::new(),
            asked_model: request.model.clone(),
            thoughts: None,
            used: calls.map(|call| call.id.clone()).collect(),
        }
    }

    /// Whether the first word, thought or call has come.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoke
    }

    /// Whether the provider said why it stopped, so that nothing of the answer is missing.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// More text.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len() + text.len() > MAX_TEXT_BYTES {
            return Err(Failure::too_large("the text of its answer", MAX_TEXT_BYTES));
        }
        self.text.push_str(text);
        self.hear(Chunk::Text(text.to_owned()));
        Ok(())
    }

    /// More of what it thinks.
    pub(crate) fn think(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.thinking_bytes += text.len();
        if self.thinking_bytes > MAX_TEXT_BYTES {
            return Err(Failure::too_large("what it thought", MAX_TEXT_BYTES));
        }
        self.hear(Chunk::Thinking(text.to_owned()));
        Ok(())
    }

    /// More of a call.
    pub(crate) fn call(&mut self, fragment: Fragment<'_>) -> Result<(), Failure> {
        self.spoke = true;
        let at = match self.drafts.iter().rposition(|draft| draft.takes(&fragment)) {
            Some(at) => at,
            None if self.drafts.len() == MAX_CALLS => {
                return Err(Failure::strange(format!(
                    "the model asks for more than {MAX_CALLS} calls at once: ask again, or another model"
                )));
            }
            None => {
                self.drafts.push(Draft { index: fragment.index, ..Draft::default() });
                self.drafts.len() - 1
            }
        };
        self.written = at;
        let draft = &mut self.drafts[at];
        if draft.id.is_empty() {
            fragment.id.clone_into(&mut draft.id);
        }
        if draft.name.is_empty() {
            fragment.name.clone_into(&mut draft.name);
        }
        draft.arguments.push_str(fragment.arguments);
        if draft.name.len() + draft.id.len() + draft.arguments.len() > MAX_ARGUMENTS_BYTES {
            return Err(Failure::too_large("one call of the model", MAX_ARGUMENTS_BYTES));
        }
        Ok(())
    }

    /// How many calls have begun.
    pub(crate) fn call_count(&self) -> u64 {
        self.drafts.len() as u64
    }

    /// Why it stopped. The first reason counts.
    pub(crate) fn stop(&mut self, finish: Finish) {
        self.finish.get_or_insert(finish);
    }

    /// What it used; what is said later is more exact.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Which model answers.
    pub(crate) fn model(&mut self, name: &str) {
        if self.model.is_empty() && !name.is_empty() {
            name.clone_into(&mut self.model);
        }
    }

    /// What the provider wants to see again.
    pub(crate) fn keep(&mut self, thoughts: Thoughts) {
        self.thoughts = Some(thoughts);
    }

    /// The whole answer. Its calls are heard now: before, none of them is sure to be whole.
    ///
    /// # Errors
    /// [`Failure`] if it is empty.
    pub(crate) fn finish(mut self) -> Result<Answer, Failure> {
        let finish = self.finish.unwrap_or_default();
        let cut_call = if matches!(finish, Finish::Length | Finish::Filtered) { self.cut() } else { None };
        let calls: Vec<_> =
            std::mem::take(&mut self.drafts).into_iter().map(|draft| self.whole(draft)).collect();
        for call in &calls {
            self.hear(Chunk::Call(call.clone()));
        }
        let finish = match finish {
            Finish::Stop if !calls.is_empty() => Finish::ToolCalls,
            Finish::ToolCalls if calls.is_empty() => Finish::Stop,
            other => other,
        };
        if finish == Finish::Stop && self.text.trim().is_empty() {
            return Err(Failure::empty());
        }
        Ok(Answer {
            text: self.text,
            calls,
            cut_call,
            finish,
            usage: self.usage,
            // Some do not say, and answer with what they were asked for.
            model: if self.model.is_empty() { self.asked_model } else { self.model },
            thoughts: self.thoughts,
        })
    }

    /// Takes out the call that was being written when the answer was broken off, and gives its tool. Its arguments may even be
    /// readable, and still lack a half. Where calls are written side by side, the others that cannot be read were cut, too.
    fn cut(&mut self) -> Option<String> {
        let cut = (self.written < self.drafts.len()).then(|| self.drafts.remove(self.written));
        self.drafts.retain(|draft| draft.arguments.trim().is_empty() || is_object(&draft.arguments));
        cut.map(|draft| draft.name)
    }

    fn whole(&mut self, draft: Draft) -> ToolCall {
        let usable =
            !draft.id.is_empty() && draft.id.len() <= MAX_ID_BYTES && !draft.id.contains(char::is_control);
        let id = if usable && !self.used.contains(&draft.id) { draft.id } else { self.made_up() };
        self.used.insert(id.clone());
        ToolCall { id, name: draft.name, arguments: arguments(draft.arguments) }
    }

    /// An id that the transcript does not have. It counts, so that the same question gets the same ids.
    fn made_up(&self) -> String {
        let start = self.used.len();
        // Among one more candidates than there are ids, one is free.
        (start..=start * 2 + 1)
            .map(|n| format!("call_{n}"))
            .find(|id| !self.used.contains(id))
            .unwrap_or_default()
    }

    fn hear(&mut self, chunk: Chunk) {
        self.spoke = true;
        self.heard.hear(chunk);
    }
}

impl Draft {
    /// Whether a fragment belongs to this call, by all that tells calls apart: what a provider leaves out differs from
    /// one to the next.
    fn takes(&self, fragment: &Fragment<'_>) -> bool {
        let differs = |own: &str, other: &str| !own.is_empty() && !other.is_empty() && own != other;
        if differs(&self.id, fragment.id) || differs(&self.name, fragment.name) {
            return false;
        }
        match (self.index, fragment.index) {
            (Some(own), Some(other)) => own == other && !self.is_whole_before(fragment),
            // Without a number a name begins a call, unless the id says that it goes on.
            _ => fragment.name.is_empty() || (!fragment.id.is_empty() && self.id == fragment.id),
        }
    }

    /// Some give every call the number 0 and no id: then a name after whole arguments begins another one.
    fn is_whole_before(&self, fragment: &Fragment<'_>) -> bool {
        !fragment.name.is_empty()
            && (self.id.is_empty() || fragment.id.is_empty())
            && self.arguments.trim_end().ends_with('}')
            && is_object(&self.arguments)
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Arguments as the loop wants them.
fn arguments(text: String) -> Arguments {
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) => Arguments::Object(object),
        // A call without arguments.
        Ok(Value::Null) => Arguments::Object(Map::new()),
        Err(_) if text.trim().is_empty() => Arguments::Object(Map::new()),
        Ok(_) | Err(_) => Arguments::Unreadable(text),
    }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
