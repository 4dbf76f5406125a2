//! Checks names and keys, and suggests the names that were probably meant.

use talon_sanitize::nearest;

use crate::name::PluginName;

use super::origin::KeyPath;
use super::shape::{Field, KeyKind, Shape, ShapeKind};

/// A key of exactly this name elsewhere in the document. The nearest one counts: what is written below a
/// plugin's overrides is probably meant for them, wherever else there is a key of that name.
fn same_name_elsewhere(root: &Shape, at: &KeyPath, name: &str) -> Option<KeyPath> {
    fn search(shape: &Shape, name: &str, path: &KeyPath) -> Option<KeyPath> {
        match &shape.kind {
            ShapeKind::Object(fields) => {
                if fields.iter().any(|field| field.name == name) {
                    return Some(path.key(name));
                }
                fields.iter().find_map(|field| search(&field.shape, name, &path.key(&field.name)))
            }
            ShapeKind::Map { value, .. } => search(value, name, &path.key("NAME")),
            ShapeKind::List(item) => search(item, name, &path.index(0)),
            _ => None,
        }
    }
    let mut around = vec![(root, KeyPath::top())];
    for step in at.steps() {
        let Some((shape, path)) = around.last() else { break };
        let Some(below) = shape.below(step) else { break };
        let path = path.key(step);
        around.push((below, path));
    }
    around.into_iter().rev().find_map(|(shape, path)| search(shape, name, &path))
}

/// The message and help for an unknown key.
#[must_use]
pub fn unknown_key(root: &Shape, shape: &Shape, path: &KeyPath, key: &str) -> (String, Option<String>) {
    let fields: &[Field] = match &shape.kind {
        ShapeKind::Object(fields) | ShapeKind::OneOf(fields) => fields,
        _ => &[],
    };
    let near = nearest(key, fields.iter().map(|field| field.name.as_str()));
    let help = near
        .first()
        .map(|near| format!("did you mean {}?", path.key(near)))
        .or_else(|| same_name_elsewhere(root, path, key).map(|elsewhere| format!("there is {elsewhere}")));
    let help = help.unwrap_or_else(|| {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        match known.len() {
            0 => "remove it".to_owned(),
            _ => format!("known here: {}", known.join(", ")),
        }
    });
    ("unknown key".to_owned(), Some(help))
}

/// Checks a key that the operator chooses.
///
/// # Errors
/// The message and the help.
pub fn check_key(kind: KeyKind, key: &str) -> Result<(), (String, Option<String>)> {
    match kind {
        KeyKind::Plugin => PluginName::new(key).map(drop).map_err(|error| {
            let suggestion = PluginName::new(&key.to_ascii_lowercase().replace(['_', ' ', '.'], "-")).ok();
            (error.to_string(), suggestion.map(|name| format!("did you mean {name}?")))
        }),
        KeyKind::Action => {
            /// The longest tool name that models accept.
            const MAX_ACTION_LEN: usize = 64;
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if !key.is_empty() && key.len() <= MAX_ACTION_LEN && key.bytes().all(plain) {
                return Ok(());
            }
            let message =
                "is not the name of an action: use 1 to 64 characters of a-z, A-Z, 0-9, '_' and '-'";
            Err((message.to_owned(), None))
        }
        KeyKind::Provider => {
            /// The name appears in every message and metric.
            const MAX_PROVIDER_LEN: usize = 64;
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            if !key.is_empty() && key.len() <= MAX_PROVIDER_LEN && key.bytes().all(plain) {
                return Ok(());
            }
            let message =
                "is not the name of a provider: use 1 to 64 characters of a-z, A-Z, 0-9, '-', '_' and '.'";
            Err((message.to_owned(), None))
        }
        KeyKind::Credential | KeyKind::Free if key.is_empty() => Err(("an empty name".to_owned(), None)),
        KeyKind::Credential | KeyKind::Free => Ok(()),
    }
}
