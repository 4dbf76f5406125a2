//! The tools offered to a model, its calls, and their results.
//!
//! - [`Offer`]: tools under the names that models see, made from the plugins' declarations
//! - [`Offer::check`]: checks a call against the offer; a bad one is a [`Refusal`], which the model receives
//!   as its result
//! - [`Batch`]: the calls of one answer, whose results may arrive in any order and are returned in the calls'
//!   order
//!
//! The plugins' descriptions have been through the host's guard. They are sanitized again, as everything that
//! arrives over a socket, which is harmless since sanitizing is idempotent.
//!
//! Whether a call is *allowed* is decided by the host, at every call: an offer only says what a model sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use talon_client::tool;
use talon_guard::Raw;
use talon_llm::model::ToolSpec;
use talon_proto::plugin::Action;
use talon_proto::roles::is_tool;

use crate::answer::Schema;

mod attachment_action;
mod batch;
mod check;
mod order;
mod pattern_intersection;
mod refusal;
mod result;
mod search;
mod tool_cache;
mod turn_actions;

pub use attachment_action::{READ_ATTACHMENT_ACTION, read_attachment_action, read_attachment_tool};
pub use batch::{Batch, BatchError, CallPlan, messages, plan};
pub use check::CheckedCall;
pub use order::earlier_calls;
pub(crate) use pattern_intersection::{PatternIntersection, intersect};
pub use refusal::Refusal;
pub use result::{denied, from_builtin, from_host};
pub use search::{ToolIndex, embedding_text};
pub use turn_actions::{
    ASK_ACTION, MAX_WAIT, PLAN_ACTION, TURN_PLUGIN, WAIT_ACTION, ask_action, plan_action, plan_steps,
    question_of, wait_action, wait_seconds,
};

/// The agent's own plugin and action that find tools.
pub const SEARCH_PLUGIN: &str = "tools";
/// See [`SEARCH_PLUGIN`].
pub const SEARCH_ACTION: &str = "search";

/// The longest description, since it costs tokens with every question. Useful ones have a few hundred
/// characters.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// The word by which an action declares images.
const IMAGES: &str = "image";

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The action.
    pub action: String,
    /// The declaration for the model.
    pub spec: ToolSpec,
    /// The action declares that it changes nothing.
    pub read_only: bool,
    /// The action declares whether it may destroy something; `None` if it does not say.
    pub destructive: Option<bool>,
    /// What of the session the action asks for (`inject_context_args`); the operator decides what it gets.
    pub injected: Vec<String>,
    /// The action declares that its answers may have images.
    pub returns_images: bool,
    /// Offer the tool always, even where not all tools fit.
    pub always_include: bool,
    /// The tool is the client's, who makes its calls.
    pub is_client: bool,
    /// Calls whose arguments do not fit are made by nobody. All tools but those of clients that check for themselves.
    pub is_strict: bool,
    /// Compiled at the first call. `None` inside if it does not compile: then only the host checks.
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
                parameters: neutralize_json(Value::Object(parameters)),
            },
            read_only: action.read_only,
            destructive: action.destructive,
            injected: action.inject_context_args.clone(),
            returns_images: action.media.iter().any(|kind| kind == IMAGES),
            always_include: action.always_include,
            is_client: false,
            is_strict: true,
            compiled: OnceLock::new(),
        }
    }

    /// A tool of a client. It has no plugin, and no call of it reaches one.
    fn of_client(spec: ToolSpec, is_strict: bool) -> Self {
        Self {
            plugin: String::new(),
            action: spec.name.clone(),
            spec,
            read_only: false,
            destructive: None,
            injected: Vec::new(),
            returns_images: false,
            always_include: true,
            is_client: true,
            is_strict,
            compiled: OnceLock::new(),
        }
    }

    fn schema(&self) -> Option<&Schema> {
        self.compiled.get_or_init(|| Schema::new(self.spec.parameters.clone()).ok()).as_ref()
    }
}

/// JSON of the same shape in which every string is neutralized, keys too.
pub(crate) fn neutralize_json(value: Value) -> Value {
    let text = |text: String| Raw::from(text).text().into_string();
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.into_iter().map(neutralize_json).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, value)| (text(key), neutralize_json(value))).collect(),
        ),
        other => other,
    }
}

/// All tools that a model is offered, by name.
#[derive(Debug, Default)]
pub struct Offer {
    tools: BTreeMap<String, Arc<Tool>>,
    /// Those that are shown only when they are of use.
    hidden: BTreeSet<String>,
}

impl Offer {
    /// Makes an offer from plugins, each with its name at the host, and their actions as the host lists them
    /// for a model. Parts for people are left out here, too.
    #[must_use]
    pub fn new<'a>(actions: impl IntoIterator<Item = (&'a str, &'a Action)>) -> Self {
        let tools = actions.into_iter().filter(|(_, action)| !action.user_only && is_tool(action)).map(
            |(plugin, action)| {
                let tool = tool_cache::tool(plugin, action);
                (tool.spec.name.clone(), tool)
            },
        );
        Self { tools: tools.collect(), hidden: BTreeSet::new() }
    }

    /// Adds an action that is shown only when it is of use, unless it is offered already.
    #[must_use]
    pub fn with_hidden(mut self, plugin: &str, action: &Action) -> Self {
        let tool = tool_cache::tool(plugin, action);
        let name = tool.spec.name.clone();
        if !self.tools.contains_key(&name) {
            self.tools.insert(name.clone(), tool);
            self.hidden.insert(name);
        }
        self
    }

    /// Adds a client's tools, each with whether its calls have to fit. One of the server with the same name is left out: the client means its own.
    #[must_use]
    pub fn with_client_tools(mut self, specs: impl IntoIterator<Item = (ToolSpec, bool)>) -> Self {
        for (spec, is_strict) in specs {
            self.hidden.remove(&spec.name);
            self.tools.insert(spec.name.clone(), Arc::new(Tool::of_client(spec, is_strict)));
        }
        self
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name).map(Arc::as_ref)
    }

    /// Those that are shown, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values().map(Arc::as_ref).filter(|tool| !self.hidden.contains(&tool.spec.name))
    }

    /// Whether a tool is shown only when it is of use.
    #[must_use]
    pub fn is_hidden(&self, name: &str) -> bool {
        self.hidden.contains(name)
    }

    /// Those that are shown only when they are of use.
    pub fn hidden(&self) -> impl Iterator<Item = &Tool> {
        self.hidden.iter().filter_map(|name| self.get(name))
    }
}

#[cfg(test)]
mod tests;
