//! Assembles an answer from its pieces.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Failure;
use crate::limits::{MAX_ARGUMENTS_BYTES, MAX_CALLS, MAX_TEXT_BYTES};
use crate::model::{Answer, Arguments, Chunk, Finish, Message, Request, Thoughts, ToolCall, Usage};
use crate::provider::ChunkListener;
use crate::wire::Piece;

/// The longest id that is accepted from a provider; longer ones are replaced. The longest in use have about
/// 60 bytes.
const MAX_ID_BYTES: usize = 128;

/// The fields of thoughts that stand beside fields of calls.
const THOUGHTS_FIELD: &str = "thoughts";
const CALLS_FIELD: &str = "fields_of_calls";

/// An incomplete answer.
pub(crate) struct Assembly<'h> {
    listener: &'h mut dyn ChunkListener,
    spoke: bool,
    text: String,
    thinking_bytes: usize,
    drafts: Vec<Draft>,
    /// The draft that was written last.
    written: usize,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: String,
    asked_model: String,
    provider: String,
    thoughts: Option<Value>,
    /// The ids in the transcript, which some providers reuse.
    used: HashSet<String>,
    /// The names of the tools on offer.
    offered: HashSet<String>,
}

#[derive(Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
    extra_bytes: usize,
}

/// A piece of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fragment<'t> {
    /// The provider's number of the call. Neither dense nor ordered, and some providers use one number for
    /// every call.
    pub(crate) index: Option<u64>,
    pub(crate) id: &'t str,
    pub(crate) name: &'t str,
    pub(crate) arguments: &'t str,
    /// Fields that the format does not have, such as Gemini's signatures; they go back with the call.
    pub(crate) extra: Option<&'t Map<String, Value>>,
}

impl<'h> Assembly<'h> {
    pub(crate) fn new(provider: &str, request: &Request, listener: &'h mut dyn ChunkListener) -> Self {
        let calls = request.messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        Self {
            listener,
            spoke: false,
            text: String::new(),
            thinking_bytes: 0,
            drafts: Vec::new(),
            written: 0,
            finish: None,
            usage: None,
            model: String::new(),
            asked_model: request.model.clone(),
            provider: provider.to_owned(),
            thoughts: None,
            used: calls.map(|call| call.id.clone()).collect(),
            offered: request.all_tools().map(|tool| tool.name.clone()).collect(),
        }
    }

    /// Whether any text, thought or call has arrived.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoke
    }

    /// Whether the provider sent a finish reason, so that the answer is complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Appends text.
    pub(crate) fn add_text(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len() + text.len() > MAX_TEXT_BYTES {
            return Err(Failure::too_large("the text of its answer", MAX_TEXT_BYTES));
        }
        self.text.push_str(text);
        self.emit(Chunk::Text(text.to_owned()));
        Ok(())
    }

    /// Appends thinking.
    pub(crate) fn add_thinking(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.thinking_bytes += text.len();
        if self.thinking_bytes > MAX_TEXT_BYTES {
            return Err(Failure::too_large("what it thought", MAX_TEXT_BYTES));
        }
        self.emit(Chunk::Thinking(text.to_owned()));
        Ok(())
    }

    /// Appends text and thoughts.
    pub(crate) fn add_pieces(&mut self, pieces: impl IntoIterator<Item = Piece>) -> Result<(), Failure> {
        pieces.into_iter().try_for_each(|piece| match piece {
            Piece::Thought(text) => self.add_thinking(&text),
            Piece::Text(text) => self.add_text(&text),
        })
    }

    /// Appends to a call.
    pub(crate) fn add_call(&mut self, fragment: Fragment<'_>) -> Result<(), Failure> {
        self.spoke = true;
        let at = match self.drafts.iter().rposition(|draft| draft.accepts(&fragment, &self.offered)) {
            Some(at) => at,
            None if self.drafts.len() == MAX_CALLS => {
                return Err(Failure::unexpected(format!(
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
        } else if draft.is_rest_of_name(fragment.name, &self.offered) {
            draft.name.push_str(fragment.name);
        }
        draft.arguments.push_str(fragment.arguments);
        for (field, value) in fragment.extra.into_iter().flatten() {
            draft.extra_bytes += field.len() + value.to_string().len();
            draft.extra.insert(field.clone(), value.clone());
        }
        if draft.name.len() + draft.id.len() + draft.arguments.len() + draft.extra_bytes > MAX_ARGUMENTS_BYTES
        {
            return Err(Failure::too_large("one call of the model", MAX_ARGUMENTS_BYTES));
        }
        Ok(())
    }

    /// The number of calls so far.
    pub(crate) fn call_count(&self) -> u64 {
        self.drafts.len() as u64
    }

    /// Sets the finish reason. The first one counts.
    pub(crate) fn set_finish(&mut self, finish: Finish) {
        self.finish.get_or_insert(finish);
    }

    /// Sets the usage; later numbers are more exact.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Sets the model that answers.
    pub(crate) fn set_model(&mut self, name: &str) {
        if self.model.is_empty() && !name.is_empty() {
            name.clone_into(&mut self.model);
        }
    }

    /// Sets the thoughts that the provider wants to see again.
    pub(crate) fn set_thoughts(&mut self, data: Value) {
        self.thoughts = Some(data);
    }

    /// Returns the whole answer, and reports its calls, which are only now known to be complete. An empty one
    /// is an answer, too: its provider works, and the loop asks the model again.
    pub(crate) fn finish(mut self) -> Answer {
        let finish = self.finish.unwrap_or_default();
        let cut_call = match finish {
            Finish::Length | Finish::Filtered | Finish::Refused => self.cut(),
            Finish::Stop | Finish::ToolCalls => None,
        };
        let mut drafts = std::mem::take(&mut self.drafts);
        let extras: Vec<_> = drafts.iter_mut().map(|draft| std::mem::take(&mut draft.extra)).collect();
        let data = with_extras(self.thoughts.take(), extras);
        let calls: Vec<_> = drafts.into_iter().map(|draft| self.whole(draft)).collect();
        for call in &calls {
            self.emit(Chunk::Call(call.clone()));
        }
        let finish = match finish {
            Finish::Stop if !calls.is_empty() => Finish::ToolCalls,
            Finish::ToolCalls if calls.is_empty() => Finish::Stop,
            other => other,
        };
        Answer {
            text: self.text,
            calls,
            cut_call,
            finish,
            usage: self.usage,
            // Some do not say; then the requested model is assumed.
            model: if self.model.is_empty() { self.asked_model.clone() } else { self.model },
            thoughts: data.map(|data| Thoughts { provider: self.provider, model: self.asked_model, data }),
            thinking: String::new(),
        }
    }

    /// Removes the call that was being written when the answer was truncated, and returns its tool. Its
    /// arguments may parse and still be incomplete. Where calls are written in parallel, others that do not
    /// parse were truncated, too.
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

    /// An id that is not in the transcript. It is a counter, so that the same question gets the same ids.
    fn made_up(&self) -> String {
        let start = self.used.len();
        // With one more candidate than there are ids, one is free.
        (start..=start * 2 + 1)
            .map(|n| format!("call_{n}"))
            .find(|id| !self.used.contains(id))
            .unwrap_or_default()
    }

    fn emit(&mut self, chunk: Chunk) {
        self.spoke = true;
        self.listener.on_chunk(chunk);
    }
}

impl Draft {
    /// Whether a fragment belongs to this call, by every field that identifies calls: providers omit
    /// different ones.
    fn accepts(&self, fragment: &Fragment<'_>, offered: &HashSet<String>) -> bool {
        let differs = |own: &str, other: &str| !own.is_empty() && !other.is_empty() && own != other;
        if differs(&self.id, fragment.id) {
            return false;
        }
        let numbered = self.index.is_some() && self.index == fragment.index;
        if numbered && self.is_rest_of_name(fragment.name, offered) {
            return true;
        }
        if differs(&self.name, fragment.name) {
            return false;
        }
        match (self.index, fragment.index) {
            (Some(own), Some(other)) => own == other && !self.is_whole_before(fragment),
            // Without a number, a name starts a new call, unless the id is that of this one.
            _ => fragment.name.is_empty() || (!fragment.id.is_empty() && self.id == fragment.id),
        }
    }

    /// Whether a name is the rest of this one: only if together they begin the name of a tool on offer, and
    /// are not two of them.
    fn is_rest_of_name(&self, more: &str, offered: &HashSet<String>) -> bool {
        if self.name.is_empty() || more.is_empty() || !self.arguments.is_empty() {
            return false;
        }
        let both = format!("{}{more}", self.name);
        offered.iter().any(|name| name.starts_with(&both))
            && !(offered.contains(&self.name) && offered.contains(more))
    }

    /// Some providers give every call the number 0 and no id: then a name after complete arguments starts
    /// another call.
    fn is_whole_before(&self, fragment: &Fragment<'_>) -> bool {
        !fragment.name.is_empty()
            && (self.id.is_empty() || fragment.id.is_empty())
            && self.arguments.trim_end().ends_with('}')
            && is_object(&self.arguments)
    }
}

/// Thoughts with the calls' own fields: what goes back is one value.
fn with_extras(thoughts: Option<Value>, extras: Vec<Map<String, Value>>) -> Option<Value> {
    if extras.iter().all(Map::is_empty) {
        return thoughts;
    }
    let extras: Vec<Value> = extras.into_iter().map(Value::Object).collect();
    Some(json!({ THOUGHTS_FIELD: thoughts, CALLS_FIELD: extras }))
}

/// The thoughts of [`with_extras`], and the fields of its calls in their order.
pub(crate) fn split_extras(data: &Value) -> (Option<&Value>, &[Value]) {
    match data.get(CALLS_FIELD).and_then(Value::as_array) {
        Some(extras) => (data.get(THOUGHTS_FIELD).filter(|thoughts| !thoughts.is_null()), extras),
        None => (Some(data), &[]),
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Parses arguments for the loop.
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
