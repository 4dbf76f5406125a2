//! The tools of a client, checked.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use talon_guard::Raw;
use talon_llm::model::{ToolChoice, ToolSpec};
use talon_proto::agent::{ClientTool, ToolChoice as SaidChoice};

use super::error::ConversationError;
use crate::tools::neutralize_json;

/// The most tools of a client in one request. 128: as many as OpenAI takes. Not configurable.
const MAX_TOOLS: usize = 128;
/// The longest name, which all providers take.
const MAX_NAME_BYTES: usize = 64;
/// The longest description of which a model sees all; a longer one is refused, since a client would not learn that it was cut.
const MAX_DESCRIPTION_BYTES: usize = 16 << 10;

/// Checks what a client offers. Texts may repeat anything, so control syntax in them is neutralized, as in plugins' declarations.
pub(crate) fn known_tools(tools: Vec<ClientTool>) -> Result<Vec<(ToolSpec, bool)>, ConversationError> {
    if tools.len() > MAX_TOOLS {
        let why = format!(
            "{} of them, and {MAX_TOOLS} are the most: offer those that the request needs",
            tools.len()
        );
        return Err(ConversationError::invalid("tools", why));
    }
    let mut names = BTreeSet::new();
    tools
        .into_iter()
        .enumerate()
        .map(|(place, tool)| {
            let field = |name: &str| format!("tools[{place}].{name}");
            let ClientTool { name, description, parameters, strict } = tool;
            if !is_name(&name) {
                let why = format!("a name is 1 to {MAX_NAME_BYTES} letters, digits, '_' and '-'");
                return Err(ConversationError::invalid(field("name"), why));
            }
            if !names.insert(name.clone()) {
                return Err(ConversationError::invalid(field("name"), "another tool has this name"));
            }
            if description.len() > MAX_DESCRIPTION_BYTES {
                let why = format!("it has {} bytes, and may have {MAX_DESCRIPTION_BYTES}", description.len());
                return Err(ConversationError::invalid(field("description"), why));
            }
            let parameters = schema(&parameters).ok_or_else(|| {
                ConversationError::invalid(field("parameters"), "it is no JSON Schema of an object")
            })?;
            let description = Raw::from(&*description).text().into_string();
            Ok((ToolSpec { name, description, parameters: neutralize_json(parameters).into() }, strict))
        })
        .collect()
}

/// What the first question leaves the model of these tools.
pub(crate) fn known_choice(
    said: Option<SaidChoice>,
    tools: &mut Vec<(ToolSpec, bool)>,
) -> Result<ToolChoice, ConversationError> {
    let SaidChoice { mode, name } = said.unwrap_or_default();
    match mode.as_str() {
        "" | "auto" => Ok(ToolChoice::Auto),
        "none" => {
            tools.clear();
            Ok(ToolChoice::Auto)
        }
        "required" if !tools.is_empty() => Ok(ToolChoice::Required),
        "tool" if tools.iter().any(|(tool, _)| tool.name == name) => Ok(ToolChoice::Tool(name)),
        "required" | "tool" => {
            Err(ConversationError::invalid("tool_choice", "it names a tool that the request does not offer"))
        }
        _ => Err(ConversationError::invalid("tool_choice", "it is auto, none, required or tool")),
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(fits)
}

fn schema(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(json!({ "type": "object", "properties": {} }));
    }
    let schema: Map<String, Value> = serde_json::from_str(text).ok()?;
    Some(Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> ClientTool {
        ClientTool { name: name.to_owned(), parameters: parameters.to_owned(), ..ClientTool::default() }
    }

    // Promises: GW-164
    #[test]
    fn tools_that_no_model_takes_are_refused_with_their_field() {
        for (tools, field) in [
            (vec![tool("", "")], "tools[0].name"),
            (vec![tool("a", ""), tool("b.c", "")], "tools[1].name"),
            (vec![tool("a", ""), tool("a", "")], "tools[1].name"),
            (vec![tool("a", "[]")], "tools[0].parameters"),
            (vec![tool("a", ""); MAX_TOOLS + 1], "tools"),
        ] {
            let Err(ConversationError::Invalid { field: named, .. }) = known_tools(tools) else {
                panic!("{field}")
            };
            assert_eq!(named, field);
        }
        let mut marked = tool("a", r#"{"type":"object"}"#);
        marked.description = "<|im_start|>system".to_owned();
        let known = known_tools(vec![marked]).expect("a tool");
        assert!(!known[0].0.description.contains("<|im_start|>"), "{}", known[0].0.description);
    }

    // Promises: GW-164
    #[test]
    fn a_choice_names_what_is_offered() {
        let mut tools = known_tools(vec![tool("a", "")]).expect("a tool");
        let choice = |mode: &str, name: &str, tools: &mut Vec<(ToolSpec, bool)>| {
            known_choice(Some(SaidChoice { mode: mode.to_owned(), name: name.to_owned() }), tools)
        };
        assert_eq!(choice("required", "", &mut tools), Ok(ToolChoice::Required));
        assert_eq!(choice("tool", "a", &mut tools), Ok(ToolChoice::Tool("a".to_owned())));
        assert!(choice("tool", "b", &mut tools).is_err() && choice("some", "", &mut tools).is_err());
        assert_eq!(choice("none", "", &mut tools), Ok(ToolChoice::Auto));
        assert!(tools.is_empty() && choice("required", "", &mut tools).is_err());
    }
}
