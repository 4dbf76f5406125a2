//! A server's tools as actions, within the limits of what a plugin may declare.

use serde_json::Value;
use talon_action_name::action_name;
use talon_bridge::text::cut;
use talon_sdk::proto::{Action, Parameter};

use super::arguments::Reader;
use super::inline::inline;
use super::schema::Parameters;

/// The most tools: what the supervisor takes from one plugin.
pub(crate) const MAX_TOOLS: usize = 1024;
/// The longest description of a tool, its title included; half of what the supervisor takes.
const MAX_DESCRIPTION_BYTES: usize = 8 << 10;
/// The longest schema of structured answers, in bytes.
const MAX_OUTPUT_SCHEMA_BYTES: usize = 32 << 10;
/// The most bytes that all actions have together; the supervisor takes 4 MiB, and the overhead around texts
/// is only estimated here.
const MAX_TOTAL_BYTES: usize = 3 << 20;
/// The most parameters of all tools together: each costs six fields, and the supervisor takes 100,000.
const MAX_TOTAL_PARAMETERS: usize = 10_000;
/// What every tool gets in any case: its names, the beginning of its description, one parameter.
const RESERVED_BYTES: usize = 1536;
const MIN_DESCRIPTION_BYTES: usize = 1024;
/// The overhead around a parameter's texts.
const PARAMETER_BYTES: usize = 32;
/// How many skipped tools are named in the log.
const MAX_LOGGED: usize = 8;

/// A tool as an action.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTool {
    /// The server's name for it.
    pub(crate) tool: String,
    /// The action that is declared to the host.
    pub(crate) action: Action,
    /// Parses its arguments.
    pub(crate) reader: Reader,
}

/// What remains for details of further tools beyond the guaranteed minimum.
struct Budget {
    bytes: usize,
    parameters: usize,
}

/// The server's tools as actions, at most `max_tools`; only those in `only`, if it is set.
pub(crate) fn offers(tools: &[Value], only: Option<&[String]>, max_tools: usize) -> Vec<OfferedTool> {
    let mut offers: Vec<OfferedTool> = Vec::new();
    let mut left_out = Vec::new();
    let expected = tools.len().min(max_tools);
    let mut budget = Budget {
        bytes: MAX_TOTAL_BYTES - expected * RESERVED_BYTES,
        parameters: MAX_TOTAL_PARAMETERS - expected,
    };
    for tool in tools {
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            left_out.push("one without a name".to_owned());
            continue;
        };
        if only.is_some_and(|only| !only.iter().any(|wanted| wanted == name)) {
            continue;
        }
        let action = action_name(name);
        let why = if offers.len() == max_tools {
            "there are more than 1024 actions: name the tools that are needed in config.tools"
        } else if offers.iter().any(|offer| offer.action.name == action) {
            "there is another one of its name"
        } else {
            offers.push(budget.offer(name, action, tool));
            continue;
        };
        left_out.push(format!("{} ({why})", cut(name, 64)));
    }
    if !left_out.is_empty() {
        let (count, named) =
            (left_out.len(), left_out.iter().take(MAX_LOGGED).cloned().collect::<Vec<_>>().join(", "));
        tracing::warn!("{count} tools of the MCP server are not offered: {named}");
    }
    for wanted in only.unwrap_or_default() {
        if !offers.iter().any(|offer| offer.tool == *wanted) {
            tracing::warn!("config.tools names {:?}, which the MCP server does not have", cut(wanted, 64));
        }
    }
    offers
}

impl Budget {
    /// The tool as an action; with fewer details if all would exceed the budget.
    fn offer(&mut self, name: &str, action: String, tool: &Value) -> OfferedTool {
        let empty = Value::Object(serde_json::Map::new());
        let schema = tool.get("inputSchema").unwrap_or(&empty);
        let whole = (description(tool), Parameters::of(schema), output_schema(name, tool));
        let (described, parameters, output_schema) = if self.try_spend(&whole) {
            whole
        } else {
            let (described, parameters, _) = whole;
            let shorter = (described, parameters.without_schemas(), String::new());
            if self.try_spend(&shorter) {
                shorter
            } else {
                let anything = Parameters::whole(&Value::Bool(true)).without_schemas();
                (cut(&shorter.0, MIN_DESCRIPTION_BYTES), anything, String::new())
            }
        };
        let reader = Reader::new(&parameters);
        let hint = |key: &str| tool.get("annotations")?.get(key)?.as_bool();
        let action = Action {
            name: action,
            description: described,
            parameters: parameters.list,
            read_only: hint("readOnlyHint").unwrap_or(false),
            destructive: hint("destructiveHint"),
            output_schema,
            takes_further_arguments: parameters.further,
            // MCP has no declaration: any tool may return any of them, and the operator grants them.
            media: ["image", "audio", "resource", "link"].map(str::to_owned).to_vec(),
            ..Action::default()
        };
        OfferedTool { tool: name.to_owned(), action, reader }
    }

    /// Deducts what this costs beyond the minimum, if the budget allows it.
    fn try_spend(&mut self, (described, parameters, output_schema): &(String, Parameters, String)) -> bool {
        let size = |p: &Parameter| p.name.len() + p.description.len() + p.schema.len() + PARAMETER_BYTES;
        let bytes = described.len() + output_schema.len() + parameters.list.iter().map(size).sum::<usize>();
        let count = parameters.list.len().saturating_sub(1);
        let left = (self.bytes.checked_sub(bytes), self.parameters.checked_sub(count));
        let (Some(bytes), Some(count)) = left else { return false };
        (self.bytes, self.parameters) = (bytes, count);
        true
    }
}

/// Title and description, without repetition.
fn description(tool: &Value) -> String {
    let text =
        |from: &Value, key: &str| from.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let described = text(tool, "description");
    let annotated = tool.get("annotations").map(|hints| text(hints, "title")).unwrap_or_default();
    let title = Some(text(tool, "title")).filter(|title| !title.is_empty()).unwrap_or(annotated);
    let name = text(tool, "name");
    let whole = match (title.is_empty() || title == name || described.contains(&title), described.is_empty())
    {
        (true, _) => described,
        (false, true) => title,
        (false, false) => format!("{title}\n{described}"),
    };
    cut(&whole, MAX_DESCRIPTION_BYTES)
}

fn output_schema(name: &str, tool: &Value) -> String {
    let Some(schema) = tool.get("outputSchema") else { return String::new() };
    match inline(schema, schema).map(|inlined| inlined.to_string()) {
        Ok(text) if text.len() <= MAX_OUTPUT_SCHEMA_BYTES => text,
        Ok(text) => {
            let (tool, bytes) = (cut(name, 64), text.len());
            tracing::info!(
                tool,
                "its output schema is not kept: it has {bytes} bytes, more than {MAX_OUTPUT_SCHEMA_BYTES}"
            );
            String::new()
        }
        Err(why) => {
            tracing::info!(tool = cut(name, 64), "its output schema is not kept: {why}");
            String::new()
        }
    }
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
