//! Converts an action to an MCP tool.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;
use talon_client::tool::{self, tool_name};
use talon_proto::plugin::{Action, PluginCapabilities};
use talon_proto::roles::is_tool;

use crate::context::Provider;
use crate::patterns::Filter;

/// A tool with its plugin and action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedTool {
    pub(crate) plugin: String,
    pub(crate) action: String,
    pub(crate) tool: Tool,
    /// Approximate size on the wire.
    pub(crate) bytes: usize,
    /// Whether links in its answers are to resources that its plugin reads.
    pub(crate) links_here: bool,
}

impl OfferedTool {
    fn new(plugin: &str, action: &Action, links_here: bool) -> Self {
        let arguments = tool::of_arguments(action);
        let mut bytes =
            json_len(&arguments) + action.description.len() + 2 * (plugin.len() + action.name.len());
        let title = format!("{} ({plugin})", action.name);
        let description = (!action.description.is_empty()).then(|| action.description.clone().into());
        let mut hints = ToolAnnotations::with_title(title.clone());
        // An undeclared hint does not mean the opposite: it is omitted, and MCP's default is "may write".
        hints.read_only_hint = action.read_only.then_some(true);
        hints.destructive_hint = action.destructive;
        let mut tool = Tool::new_with_raw(tool_name(plugin, &action.name), description, Arc::new(arguments))
            .with_title(title)
            .with_annotations(hints);
        if let Some(answer) = tool::of_answer(action) {
            bytes += json_len(&answer);
            tool = tool.with_raw_output_schema(Arc::new(answer));
        }
        Self { plugin: plugin.to_owned(), action: action.name.clone(), tool, bytes, links_here }
    }

    /// Whether structured content matches the top level of the output schema: an object with the required
    /// properties. MCP hosts check the rest themselves.
    pub(crate) fn matches_output_schema(&self, structured: Option<&Value>) -> bool {
        let Some(schema) = &self.tool.output_schema else { return true };
        let Some(Value::Object(given)) = structured else { return false };
        let required = schema.get("required").and_then(Value::as_array);
        required.is_none_or(|all| all.iter().filter_map(Value::as_str).all(|name| given.contains_key(name)))
    }
}

fn json_len(object: &rmcp::model::JsonObject) -> usize {
    /// Counts the bytes written to it.
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A map of JSON values always serializes, and the writer cannot fail.
    let _ = serde_json::to_writer(&mut count, object);
    count.0
}

/// The tools of one plugin: its actions, except those reserved for people and those that the filter excludes.
pub(crate) fn of_plugin(
    plugin: &str,
    capabilities: &PluginCapabilities,
    filter: &Filter,
) -> Vec<OfferedTool> {
    let links_here = Provider::of(plugin, capabilities, filter).reads();
    let actions = capabilities.actions.iter();
    actions
        .filter(|action| !action.user_only && is_tool(action) && filter.offers(plugin, &action.name))
        .map(|action| OfferedTool::new(plugin, action, links_here))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn action(name: &str) -> Action {
        Action { name: name.to_owned(), ..Action::default() }
    }

    #[test]
    fn what_is_for_people_is_not_offered_and_hints_are_said_only_where_known() {
        let actions = vec![
            Action { user_only: true, ..action("wipe") },
            Action { read_only: true, description: "Reads.".to_owned(), ..action("read") },
            Action { destructive: Some(true), ..action("remove") },
            Action { destructive: Some(false), ..action("add") },
            action("other"),
        ];
        let tools = of_plugin(
            "p",
            &PluginCapabilities { actions, ..PluginCapabilities::default() },
            &Filter::default(),
        );
        let shown: Vec<Value> = tools
            .iter()
            .map(|offered| {
                let tool = serde_json::to_value(&offered.tool).unwrap();
                let hint = |name: &str| tool["annotations"].get(name).cloned().unwrap_or_default();
                json!([
                    tool["name"],
                    tool["title"],
                    tool.get("description"),
                    hint("readOnlyHint"),
                    hint("destructiveHint")
                ])
            })
            .collect();
        let expected = json!([
            ["p__read", "read (p)", "Reads.", true, null],
            ["p__remove", "remove (p)", null, null, true],
            ["p__add", "add (p)", null, null, false],
            ["p__other", "other (p)", null, null, null],
        ]);
        assert_eq!(json!(shown), expected);
    }

    #[test]
    fn a_promise_is_kept_by_an_object_with_what_is_required() {
        let schema = json!({ "type": "object", "required": ["a"] }).to_string();
        let promised = OfferedTool::new("p", &Action { output_schema: schema, ..action("x") }, false);
        assert!(promised.matches_output_schema(Some(&json!({ "a": 1, "b": 2 }))));
        for broken in [None, Some(json!({ "b": 2 })), Some(json!([1])), Some(json!(null))] {
            assert!(!promised.matches_output_schema(broken.as_ref()), "{broken:?}");
        }
        assert!(OfferedTool::new("p", &action("x"), false).matches_output_schema(None));
    }
}
