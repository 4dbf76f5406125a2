//! What a model may call, what it called, and what came of it.
//!
//! - [`Offer`]: tools by the names that models get, made of what plugins declare
//! - [`Offer::check`]: a call against the offer; what does not fit is a [`Refusal`], which the model gets as data
//! - [`Batch`]: the calls of one answer, whose results may come in any order and leave in theirs
//!
//! What plugins say of their tools has been through the host's guard, and is taken for raw once more, as all that comes over a socket: it
//! costs nothing, for sanitizing is idempotent.
//!
//! Whether a call is *allowed* is for the host to say, at every call: an offer only says what a model gets to see.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;
use talon_client::tool;
use talon_guard::Raw;
use talon_llm::model::ToolSpec;
use talon_proto::plugin::Action;

use crate::answer::Schema;

mod batch;
mod check;
mod nearest;
mod refusal;
mod result;

pub use batch::{Batch, BatchError, Planned, messages, plan};
pub use check::Checked;
pub use refusal::Refusal;
pub use result::{from_host, from_own, said_no};

/// A description that is longer is cut: it costs tokens with every question. The longest that helps are a few hundred characters.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// Which of its actions.
    pub action: String,
    /// What the model gets.
    pub spec: ToolSpec,
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something, as it says itself; `None` if it does not say.
    pub destructive: Option<bool>,
    /// It wants to be offered always, also where not all tools fit.
    pub always_include: bool,
    /// Compiled at the first call. `None` inside if it cannot be: then the host alone checks.
    compiled: OnceLock<Option<Schema>>,
}

impl Tool {
    fn new(plugin: &str, action: &Action) -> Self {
        let parameters = tool::of_arguments(action);
        Self {
            plugin: plugin.to_owned(),
            action: action.name.clone(),
            spec: ToolSpec {
                name: tool::tool_name(plugin, &action.name),
                description: Raw::from(&*action.description).text().cut(MAX_DESCRIPTION_BYTES).into_string(),
                parameters: inert(Value::Object(parameters)),
            },
            read_only: action.read_only,
            destructive: action.destructive,
            always_include: action.always_include,
            compiled: OnceLock::new(),
        }
    }

    fn schema(&self) -> Option<&Schema> {
        self.compiled.get_or_init(|| Schema::new(self.spec.parameters.clone()).ok()).as_ref()
    }
}

/// JSON of the same shape in which every string is inert, keys too.
pub(crate) fn inert(value: Value) -> Value {
    let text = |text: String| Raw::from(text).text().into_string();
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.into_iter().map(inert).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (text(key), inert(value))).collect())
        }
        other => other,
    }
}

/// All tools that a model is offered, by name.
#[derive(Debug, Default)]
pub struct Offer(BTreeMap<String, Tool>);

impl Offer {
    /// Of plugins, each with the name under which the host runs it, and their actions as the host tells them for a model. What is
    /// for people alone is left out here, too.
    #[must_use]
    pub fn new<'a>(actions: impl IntoIterator<Item = (&'a str, &'a Action)>) -> Self {
        let tools = actions.into_iter().filter(|(_, action)| !action.user_only).map(|(plugin, action)| {
            let tool = Tool::new(plugin, action);
            (tool.spec.name.clone(), tool)
        });
        Self(tools.collect())
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests;
