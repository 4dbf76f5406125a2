//! What the actions of this module have in common.

use std::collections::BTreeMap;

use talon_sdk::proto::{Action, Parameter};
use talon_sdk::{Context, ToolError};

/// An action that reads, and that a model gets neither listed nor called.
pub(super) fn declaration(name: &str, description: &str, parameters: Vec<Parameter>) -> Action {
    Action {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        user_only: true,
        read_only: true,
        ..Action::default()
    }
}

/// A parameter that is a text.
pub(super) fn text(name: &str, description: &str, required: bool) -> Parameter {
    Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        r#type: "string".to_owned(),
        required,
        ..Parameter::default()
    }
}

/// The argument as it came: as JSON, or as a text alone.
pub(super) fn argument(args: &BTreeMap<String, String>, cx: &Context, name: &str) -> Option<String> {
    let typed = cx.arguments().and_then(|all| all.iter().find(|(known, _)| *known == name));
    match typed.and_then(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok()) {
        Some(serde_json::Value::String(text)) => Some(text),
        Some(serde_json::Value::Null) => None,
        _ => args.get(name).cloned(),
    }
}

/// The same for one that has to be there.
pub(super) fn required(
    args: &BTreeMap<String, String>,
    cx: &Context,
    name: &str,
) -> Result<String, ToolError> {
    argument(args, cx, name).ok_or_else(|| ToolError::new(format!("the argument {name} is missing")))
}
