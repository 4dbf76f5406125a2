//! Checks a call against the offer.

use serde_json::{Map, Value};
use talon_arguments::Arguments as WireArguments;
use talon_guard::nearest;
use talon_llm::model::{Arguments, ToolCall};

use super::{Offer, Refusal, Tool};

/// A call that can be made.
#[derive(Debug, Clone, Copy)]
pub struct CheckedCall<'o> {
    /// The tool.
    pub tool: &'o Tool,
    arguments: &'o Map<String, Value>,
}

impl CheckedCall<'_> {
    /// The arguments as they are sent: [`talon_arguments::Arguments::texts`] has them as texts. `null` for an
    /// argument that the tool does not have is left out.
    #[must_use]
    pub fn to_wire(&self) -> WireArguments {
        let properties = properties(self.tool);
        let mut arguments = WireArguments::of(self.arguments);
        for (name, value) in self.arguments {
            if value.is_null() && !properties.is_some_and(|properties| properties.contains_key(name)) {
                arguments.remove(name);
            }
        }
        arguments
    }
}

impl Offer {
    /// Whether a call can be made. `cut_off` says that its answer reached the token limit.
    ///
    /// # Errors
    /// [`Refusal`], for the model.
    pub fn check<'o>(&'o self, call: &'o ToolCall, cut_off: bool) -> Result<CheckedCall<'o>, Refusal> {
        let names = || self.tools.keys().map(String::as_str);
        let Some(tool) = self.get(&call.name) else {
            return Err(Refusal::not_offered(call, nearest(&call.name, names())));
        };
        let arguments = match &call.arguments {
            Arguments::Object(arguments) => arguments,
            Arguments::Unreadable(text) => return Err(Refusal::unreadable(text, cut_off)),
        };
        // The client checks its own.
        if !tool.is_strict {
            return Ok(CheckedCall { tool, arguments });
        }
        let properties = properties(tool);
        let is_known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let (known, unknown): (Vec<_>, Vec<_>) =
            arguments.iter().filter(|(_, value)| !value.is_null()).partition(|(name, _)| is_known(name));
        let unknown: Vec<_> = unknown
            .into_iter()
            .take(MAX_UNKNOWN)
            .map(|(name, _)| {
                let near = nearest(name, properties.into_iter().flat_map(Map::keys).map(String::as_str));
                (name.clone(), near)
            })
            .collect();
        let mismatches =
            tool.schema().map_or(Ok(()), |schema| schema.check(&coerce_arguments(known, properties)));
        match mismatches {
            Ok(()) if unknown.is_empty() => Ok(CheckedCall { tool, arguments }),
            Ok(()) => Err(Refusal::arguments(Vec::new(), unknown)),
            Err(mismatches) => Err(Refusal::arguments(mismatches, unknown)),
        }
    }
}

fn properties(tool: &Tool) -> Option<&Map<String, Value>> {
    tool.spec.parameters.get("properties").and_then(Value::as_object)
}

/// The most unknown arguments named to the model. It sees the schema; more than a few are a misunderstanding.
const MAX_UNKNOWN: usize = 4;

/// Normalizes arguments for the check: `null` is an omitted argument, and a number or list inside a string is
/// that number or list. Both are the same on the wire, so rejecting them would only cost tokens.
fn coerce_arguments(arguments: Vec<(&String, &Value)>, properties: Option<&Map<String, Value>>) -> Value {
    let meant = arguments.into_iter().map(|(name, value)| {
        let wants =
            properties.and_then(|properties| properties.get(name)).and_then(|schema| schema.get("type"));
        let value = match (value, wants.and_then(Value::as_str)) {
            (Value::String(text), Some("integer" | "number" | "boolean" | "array" | "object")) => {
                serde_json::from_str(text).unwrap_or_else(|_| value.clone())
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(meant.collect())
}
