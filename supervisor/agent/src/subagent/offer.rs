//! Sub-agents as one action that a model is offered: which of them is an argument, so that thirty of them cost
//! little more than one.

use serde_json::json;
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};

use super::definition::Definition;
use super::{RUN, SUBAGENT};

/// The action that gives a task to one of them.
pub(super) fn capabilities<'d>(
    definitions: impl Iterator<Item = (&'d String, &'d Definition)>,
) -> PluginCapabilities {
    PluginCapabilities {
        name: SUBAGENT.to_owned(),
        description: "Helpers for a focused task each.".to_owned(),
        actions: vec![action(definitions)],
        ..PluginCapabilities::default()
    }
}

fn action<'d>(definitions: impl Iterator<Item = (&'d String, &'d Definition)>) -> Action {
    let parameter = |name: &str, kind: &str, required, schema: String, description: String| Parameter {
        name: name.to_owned(),
        description,
        r#type: kind.to_owned(),
        required,
        schema,
    };
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for (name, definition) in definitions {
        names.push(name.as_str());
        // The built-in ones' names say what they do.
        let description = definition.entry.description.trim().trim_end_matches('.');
        if !description.is_empty() {
            lines.push(format!("{name}: {description}"));
        }
    }
    Action {
        name: RUN.to_owned(),
        description: "Gives a task to a helper, which does not see this conversation.".to_owned(),
        parameters: vec![
            parameter("agent", "string", true, json!({ "enum": names }).to_string(), lines.join("; ")),
            parameter("task", "string", true, String::new(), String::new()),
            parameter("context", "string", false, String::new(), "What it needs".to_owned()),
            parameter("output_schema", "object", false, String::new(), "Its JSON Schema".to_owned()),
        ],
        // It changes nothing itself: each of its calls has its own approval.
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}
