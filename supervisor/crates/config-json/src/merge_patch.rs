//! A JSON merge patch (RFC 7396) as edits of single keys.

use serde_json::{Map, Value};
use talon_proto::host::ConfigEdit;

use crate::message;

/// Why a JSON value is no patch. The texts that people read are their clients'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergePatchError {
    /// It is no object.
    #[error("the patch is no object")]
    NotAnObject,
    /// The object below this key is empty: such a patch would change nothing there.
    #[error("an object of the patch is empty")]
    EmptyObject(Vec<String>),
}

/// The edits. An object is a patch of what is below it, `null` removes, anything else is set. The parser of JSON bounds the depth, and
/// the supervisor the number.
///
/// # Errors
/// [`MergePatchError`]
pub fn edits(patch: Value) -> Result<Vec<ConfigEdit>, MergePatchError> {
    let Value::Object(patch) = patch else { return Err(MergePatchError::NotAnObject) };
    let mut edits = Vec::new();
    collect(patch, &[], &mut edits)?;
    Ok(edits)
}

fn collect(
    patch: Map<String, Value>,
    above: &[String],
    edits: &mut Vec<ConfigEdit>,
) -> Result<(), MergePatchError> {
    for (name, value) in patch {
        let key = [above, &[name]].concat();
        match value {
            Value::Object(below) if below.is_empty() => return Err(MergePatchError::EmptyObject(key)),
            Value::Object(below) => collect(below, &key, edits)?,
            Value::Null => edits.push(ConfigEdit { key, value: None }),
            value => edits.push(ConfigEdit { key, value: Some(message(&value)) }),
        }
    }
    Ok(())
}
