//! One tool, as a model is shown it.

use std::sync::OnceLock;

use serde_json::Value;
use talon_client::tool;
use talon_guard::Raw;
use talon_llm::model::ToolSpec;
use talon_proto::plugin::Action;

use crate::answer::Schema;

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
    /// The tool of an action of a plugin.
    pub(super) fn new(plugin: &str, action: &Action) -> Self {
        let parameters = tool::of_arguments(action);
        Self {
            plugin: plugin.to_owned(),
            action: action.name.clone(),
            spec: ToolSpec {
                name: tool::tool_name(plugin, &action.name),
                description: Raw::from(&*action.description).text().cut(MAX_DESCRIPTION_BYTES).into_string(),
                parameters: neutralize_json(Value::Object(parameters)).into(),
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
    pub(super) fn of_client(spec: ToolSpec, is_strict: bool) -> Self {
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

    pub(super) fn schema(&self) -> Option<&Schema> {
        self.compiled.get_or_init(|| Schema::new(Value::clone(&self.spec.parameters)).ok()).as_ref()
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
