//! The fields of a request as the parameters of an action, by the mapping of proto3's JSON.

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};
use talon_sdk::proto::Parameter;

use crate::comments;

/// The most fields of one request: as many parameters as the supervisor takes.
pub(crate) const MAX_FIELDS: usize = 256;
/// How deep a schema follows messages within messages. What lies deeper, or within itself, is an object of any
/// content in the schema; the call takes it all the same.
const MAX_DEPTH: usize = 6;
/// How many schemas one parameter has inside; those beyond are of any content.
const MAX_NODES: usize = 256;
/// How many names of an enum are listed.
const MAX_ENUM_VALUES: usize = 128;
/// The longest schema of a parameter, in bytes: half of what the supervisor takes. A longer one is left out, and
/// only the type remains.
const MAX_SCHEMA_BYTES: usize = 32 << 10;
/// The most bytes of schemas and descriptions of all actions; the supervisor takes 4 MiB of everything.
const MAX_TOTAL_BYTES: usize = 2 << 20;

/// What remains of [`MAX_TOTAL_BYTES`].
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MAX_TOTAL_BYTES)
    }
}

impl Budget {
    /// The text, if there is room for it.
    pub(crate) fn spend(&mut self, text: String) -> String {
        match self.0.checked_sub(text.len()) {
            Some(left) => {
                self.0 = left;
                text
            }
            None => String::new(),
        }
    }
}

/// The parameters of a request, one for each field, under the field's JSON name.
pub(crate) fn parameters(request: &MessageDescriptor, budget: &mut Budget) -> Vec<Parameter> {
    request.fields().map(|field| parameter(&field, budget)).collect()
}

fn parameter(field: &FieldDescriptor, budget: &mut Budget) -> Parameter {
    let schema = Walk { nodes: MAX_NODES, above: Vec::new() }.field(field);
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = Value::Object(schema).to_string();
    Parameter {
        name: field.json_name().to_owned(),
        description: budget.spend(comments::of(field.parent_file().file_descriptor_proto(), field.path())),
        r#type: if kind.is_empty() { "any".to_owned() } else { kind },
        required: field.cardinality() == Cardinality::Required,
        schema: if text.len() > MAX_SCHEMA_BYTES { String::new() } else { budget.spend(text) },
    }
}

type Schema = Map<String, Value>;

/// Visits types within limits.
struct Walk {
    nodes: usize,
    /// The messages that are being described, by their full names.
    above: Vec<String>,
}

impl Walk {
    fn field(&mut self, field: &FieldDescriptor) -> Schema {
        let Kind::Message(message) = field.kind() else {
            let one = scalar(&field.kind());
            return if field.is_list() { array(one) } else { one };
        };
        if field.is_map() {
            let value = self.field(&message.map_entry_value_field());
            return object(json!({ "type": "object", "additionalProperties": value }));
        }
        let one = self.message(&message);
        if field.is_list() { array(one) } else { one }
    }

    fn message(&mut self, message: &MessageDescriptor) -> Schema {
        if let Some(known) = well_known(message.full_name()) {
            return known;
        }
        let anything = || object(json!({ "type": "object" }));
        let is_above = self.above.iter().any(|name| name == message.full_name());
        let fields = message.fields().len();
        if is_above || self.above.len() == MAX_DEPTH || self.nodes < fields {
            return anything();
        }
        self.nodes -= fields;
        self.above.push(message.full_name().to_owned());
        let (mut properties, mut required) = (Schema::new(), Vec::new());
        for field in message.fields() {
            properties.insert(field.json_name().to_owned(), Value::Object(self.field(&field)));
            if field.cardinality() == Cardinality::Required {
                required.push(Value::from(field.json_name()));
            }
        }
        self.above.pop();
        let mut schema =
            object(json!({ "type": "object", "properties": properties, "additionalProperties": false }));
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema
    }
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(fields) => fields,
        _ => Schema::new(),
    }
}

fn array(items: Schema) -> Schema {
    object(json!({ "type": "array", "items": items }))
}

fn scalar(kind: &Kind) -> Schema {
    object(match kind {
        Kind::Double | Kind::Float => json!({ "type": "number" }),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX })
        }
        Kind::Uint32 | Kind::Fixed32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!({ "type": "integer" }),
        Kind::Uint64 | Kind::Fixed64 => json!({ "type": "integer", "minimum": 0 }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::String => json!({ "type": "string" }),
        Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        Kind::Enum(names) => {
            let names: Vec<String> = names.values().map(|value| value.name().to_owned()).collect();
            if names.len() > MAX_ENUM_VALUES {
                json!({ "type": "string" })
            } else {
                json!({ "type": "string", "enum": names })
            }
        }
        Kind::Message(_) => json!({ "type": "object" }),
    })
}

/// The messages that have a JSON form of their own.
fn well_known(full_name: &str) -> Option<Schema> {
    let schema = match full_name.strip_prefix("google.protobuf.")? {
        "Timestamp" => json!({ "type": "string", "format": "date-time" }),
        "Duration" => json!({ "type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$" }),
        "FieldMask" => json!({ "type": "string" }),
        "Struct" | "Any" => json!({ "type": "object" }),
        "ListValue" => json!({ "type": "array" }),
        "Value" => json!({}),
        "DoubleValue" | "FloatValue" => json!({ "type": ["number", "null"] }),
        "Int32Value" | "Int64Value" => json!({ "type": ["integer", "null"] }),
        "UInt32Value" | "UInt64Value" => json!({ "type": ["integer", "null"], "minimum": 0 }),
        "BoolValue" => json!({ "type": ["boolean", "null"] }),
        "StringValue" => json!({ "type": ["string", "null"] }),
        "BytesValue" => json!({ "type": ["string", "null"], "contentEncoding": "base64" }),
        _ => return None,
    };
    Some(object(schema))
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
