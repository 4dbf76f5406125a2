//! What is kept of a resource, a template or a prompt in a list.

use serde_json::{Map, Value};
use talon_bridge::text::cut;

/// The longest names and titles, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// The longest address and name of a prompt: what is longer could not be asked for if it were cut, so the item is left out.
pub(super) const MAX_KEY_BYTES: usize = 2048;
/// The longest description of an item, and of a prompt's argument.
const MAX_DESCRIPTION_BYTES: usize = 1024;
const MAX_ARGUMENT_DESCRIPTION_BYTES: usize = 256;
/// The most arguments of a prompt: with more it is left out, because one that is required might be missing.
const MAX_ARGUMENTS: usize = 32;

/// A resource or a template, whose address stands in the field `uri`.
pub(super) fn resource(item: &Value, uri: &str) -> Option<Value> {
    let mut kept = Map::new();
    kept.insert(uri.to_owned(), key(item, uri)?.into());
    shorten_into(&mut kept, item, "name", MAX_NAME_BYTES);
    shorten_into(&mut kept, item, "title", MAX_NAME_BYTES);
    shorten_into(&mut kept, item, "description", MAX_DESCRIPTION_BYTES);
    shorten_into(&mut kept, item, "mimeType", MAX_NAME_BYTES);
    if let Some(size) = item.get("size").and_then(Value::as_u64) {
        kept.insert("size".to_owned(), size.into());
    }
    Some(kept.into())
}

/// A prompt.
pub(super) fn prompt(item: &Value) -> Option<Value> {
    let mut kept = Map::new();
    kept.insert("name".to_owned(), key(item, "name")?.into());
    shorten_into(&mut kept, item, "title", MAX_NAME_BYTES);
    shorten_into(&mut kept, item, "description", MAX_DESCRIPTION_BYTES);
    let arguments = item.get("arguments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if arguments.len() > MAX_ARGUMENTS {
        return None;
    }
    let arguments: Option<Vec<Value>> = arguments.iter().map(argument).collect();
    kept.insert("arguments".to_owned(), arguments?.into());
    Some(kept.into())
}

fn argument(item: &Value) -> Option<Value> {
    let name = item.get("name").and_then(Value::as_str).filter(|name| name.len() <= MAX_NAME_BYTES)?;
    let mut kept = Map::new();
    kept.insert("name".to_owned(), name.into());
    shorten_into(&mut kept, item, "description", MAX_ARGUMENT_DESCRIPTION_BYTES);
    if let Some(required) = item.get("required").and_then(Value::as_bool) {
        kept.insert("required".to_owned(), required.into());
    }
    Some(kept.into())
}

fn key<'v>(item: &'v Value, name: &str) -> Option<&'v str> {
    let text = item.get(name).and_then(Value::as_str)?;
    (!text.is_empty() && text.len() <= MAX_KEY_BYTES).then_some(text)
}

fn shorten_into(kept: &mut Map<String, Value>, item: &Value, name: &str, max_bytes: usize) {
    if let Some(text) = item.get(name).and_then(Value::as_str) {
        kept.insert(name.to_owned(), cut(text, max_bytes).into());
    }
}
