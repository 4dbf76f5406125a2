//! Gives arguments for plugins the originals of what a model copied from tools' results, before anything
//! looks at them: the schema, approvals and their digest. What a model sees keeps its marks.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talon_llm::model::{Arguments, ToolCall};
use talon_sanitize::has_marks;

use super::drive::TurnRun;
use super::{read_more, search};
use crate::originals::Restored;
use crate::tool_result::MAX_ARGUMENTS_BYTES;

impl TurnRun<'_> {
    /// The calls as they will be made.
    pub(super) async fn with_originals<'c>(&mut self, calls: &'c [ToolCall]) -> Cow<'c, [ToolCall]> {
        if !calls.iter().any(|call| self.may_be_restored(call)) {
            return Cow::Borrowed(calls);
        }
        self.load_originals().await;
        let mut made = calls.to_vec();
        let places: Vec<usize> =
            (0..calls.len()).filter(|place| self.may_be_restored(&calls[*place])).collect();
        for place in places {
            let mut restored = Restored::default();
            if let Arguments::Object(arguments) = &mut made[place].arguments {
                for value in arguments.values_mut() {
                    self.originals.restore(value, &mut restored);
                }
            }
            if restored.marks_left > 0 {
                self.notice("info", marks_left(&made[place].name, restored.marks_left));
            }
        }
        Cow::Owned(made)
    }

    /// Whether it is a plugin's call with marks in its arguments. The agent's own tools show models what they
    /// get, so it stays marked.
    fn may_be_restored(&self, call: &ToolCall) -> bool {
        let Arguments::Object(arguments) = &call.arguments else { return false };
        let Some(tool) = self.offer.get(&call.name) else { return false };
        let is_own = search::searches(self, &call.name)
            || tool.plugin == read_more::PLUGIN
            || self.environment.builtin_tools.iter().any(|own| {
                own.capabilities(&self.spec.caller)
                    .is_some_and(|capabilities| capabilities.name == tool.plugin)
            });
        !is_own && arguments.values().any(may_have_marks)
    }

    /// The arguments as they were sent, for the record, if they are not what the model wrote; their digest if
    /// they are too large for it.
    pub(super) fn sent_otherwise(&self, place: usize, sent: &talon_arguments::Arguments) -> Option<String> {
        let wrote = &self.turn.context().answer()?.calls.get(place)?.arguments;
        let Arguments::Object(wrote) = wrote else { return None };
        let sent = sent.to_json();
        match sent {
            _ if talon_arguments::Arguments::of(wrote).to_json() == sent => None,
            _ if sent.len() <= MAX_ARGUMENTS_BYTES => Some(sent),
            _ => Some(format!("sha256:{}", hex::encode(Sha256::digest(&sent)))),
        }
    }

    /// Reads the originals of the session's earlier results, once in a turn and only if they are needed.
    async fn load_originals(&mut self) {
        if std::mem::replace(&mut self.loaded_originals, true) {
            return;
        }
        let Some(journal) = &self.spec.journal else { return };
        match journal.originals().await {
            Ok(spans) => self.originals.add(&spans),
            Err(error) => {
                tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "originals were not read, so marks may stay in arguments");
            }
        }
    }
}

fn may_have_marks(value: &Value) -> bool {
    match value {
        Value::String(text) => has_marks(text),
        Value::Array(items) => items.iter().any(may_have_marks),
        Value::Object(fields) => fields.values().any(may_have_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn marks_left(tool: &str, marks: usize) -> String {
    let (marks, them) = match marks {
        1 => ("1 mark of the guard".to_owned(), "it"),
        _ => (format!("{marks} marks of the guard"), "them"),
    };
    format!(
        "The arguments of {tool} have {marks} (as in <·tag>), and what stood in the place of {them} is not known in this session or not \
         certain: sent as the model wrote it. Look at what was written; reading the file again in this session lets the next call \
         restore it."
    )
}
