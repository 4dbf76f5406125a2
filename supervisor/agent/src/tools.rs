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
use std::sync::Arc;

use talon_llm::model::ToolSpec;
use talon_proto::plugin::Action;
use talon_proto::roles::is_tool;

mod attachment_action;
mod batch;
mod check;
mod offered_tool;
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
pub use offered_tool::Tool;
pub(crate) use offered_tool::neutralize_json;
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
