//! Reads the texts of a call as the JSON that they stand for.

use std::collections::BTreeMap;

use crate::{Arguments, Kinds, ParameterKinds, Reading, read_text};

/// How much of a wrong value an error repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

/// A text is not what its parameter takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongKindError {
    name: String,
    shown: String,
    kinds: Kinds,
}

impl std::fmt::Display for WrongKindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "argument `{}`: {:?} is not {}", self.name, self.shown, expected(self.kinds))
    }
}

impl std::error::Error for WrongKindError {}

/// The arguments as JSON, by the kinds of their parameters. A name that is not among them may be anything.
///
/// # Errors
/// [`WrongKindError`], for the first one.
pub fn read_texts(
    texts: &BTreeMap<String, String>,
    kinds: &BTreeMap<String, ParameterKinds>,
) -> Result<Arguments, WrongKindError> {
    let mut all = Arguments::default();
    for (name, text) in texts {
        let anything = ParameterKinds { kinds: Kinds::ANY, is_optional: true };
        let taken = kinds.get(name).copied().unwrap_or(anything);
        match read_text(text, taken) {
            Some(Reading::String(text)) => all.insert_string(name, text),
            Some(Reading::Json(json)) => all.insert_json(name, json),
            Some(Reading::LeftOut) => {}
            None => {
                return Err(WrongKindError { name: name.clone(), shown: shown(text), kinds: taken.kinds });
            }
        }
    }
    Ok(all)
}

fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    format!("{}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

fn expected(kinds: Kinds) -> String {
    let word = match kinds.single().filter(|_| !kinds.admits(Kinds::NULL)) {
        Some("string") => "a text",
        Some("integer") => "an integer",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        Some("array") => "a JSON array such as [\"a\",\"b\"]",
        Some("object") => "a JSON object such as {\"a\":1}",
        _ => return kinds.to_string(),
    };
    word.to_owned()
}
