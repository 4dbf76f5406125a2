//! Sub-agents as actions that a model is offered.

use serde_json::Value;
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};

use super::SUBAGENT;
use super::definition::Definition;
use super::limits::MAX_TASK_BYTES;

/// All of them.
pub(super) fn capabilities<'d>(
    definitions: impl Iterator<Item = (&'d String, &'d Definition)>,
) -> PluginCapabilities {
    PluginCapabilities {
        name: SUBAGENT.to_owned(),
        description: "Helpers for a focused task each. They see nothing of this conversation but what a call gives them; several calls \
                      run at once."
            .to_owned(),
        actions: definitions.map(|(name, definition)| action(name, definition)).collect(),
        ..PluginCapabilities::default()
    }
}

fn action(name: &str, definition: &Definition) -> Action {
    let parameter = |name: &str, kind: &str, required, schema: &str, description: &str| Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        r#type: kind.to_owned(),
        required,
        schema: schema.to_owned(),
    };
    Action {
        name: name.to_owned(),
        description: format!(
            "{} Answers {}.",
            definition.entry.description.trim(),
            fields(&definition.entry.schema)
        ),
        parameters: vec![
            parameter(
                "task",
                "string",
                true,
                &format!(r#"{{"minLength": 1, "maxLength": {MAX_TASK_BYTES}}}"#),
                "What to do, in full",
            ),
            parameter("context", "string", false, "", "What it has to know for it; about 500 tokens"),
            parameter(
                "output_schema",
                "object",
                false,
                "",
                "JSON Schema of another answer than its usual one",
            ),
        ],
        // It changes nothing itself: each of its calls has its own approval.
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

/// `{summary, sources, key_facts}`
fn fields(schema: &Value) -> String {
    let names = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> =
        names.into_iter().flat_map(|names| names.keys()).map(String::as_str).take(12).collect();
    format!("{{{}}}", names.join(", "))
}
