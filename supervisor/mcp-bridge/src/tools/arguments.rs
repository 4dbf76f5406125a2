//! Converts the arguments of a call to the JSON that a server takes.
//!
//! Where the caller sent JSON, the server gets that: every value with its type, and numbers with all their
//! digits. Of texts the rules of `talon_arguments` decide, as in the guard.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use talon_arguments::{Arguments, Kinds, ParameterKinds, Reading, read_text};
use talon_bridge::text::cut;
use talon_sdk::proto::Parameter;

use super::schema::{Parameters, WHOLE};
use crate::server::request_text::RawArguments;

/// How much of a wrong value an error repeats.
const MAX_SHOWN_BYTES: usize = 64;

/// The arguments cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// One is not of its parameter's kind.
    #[error("argument `{name}`: {shown:?} is not {}", expected(*.kinds))]
    Kind { name: String, shown: String, kinds: Kinds },
    /// They are no JSON object.
    #[error("the arguments cannot be sent: {0}")]
    Json(String),
}

/// Arguments for the server.
#[derive(Debug)]
pub(crate) struct ServerArguments {
    /// As the library takes them.
    pub(crate) object: JsonObject,
    /// As they are sent.
    pub(crate) raw: RawArguments,
}

/// Reads the arguments of one action.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    kinds: BTreeMap<String, ParameterKinds>,
    whole: bool,
}

impl Reader {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let kinds = |parameter: &Parameter| {
            let schema = serde_json::from_str::<JsonObject>(&parameter.schema).ok();
            ParameterKinds::new(&parameter.r#type, parameter.required, schema.as_ref())
        };
        let entry = |parameter: &Parameter| (parameter.name.clone(), kinds(parameter));
        Self { kinds: parameters.list.iter().map(entry).collect(), whole: parameters.whole }
    }

    /// The arguments for the server: from JSON, if the caller sent it.
    ///
    /// # Errors
    /// [`ArgumentError`]
    pub(crate) fn read(
        &self,
        texts: &BTreeMap<String, String>,
        json: Option<&Arguments>,
    ) -> Result<ServerArguments, ArgumentError> {
        let all = match json {
            Some(json) => json.clone(),
            None => self.read_texts(texts)?,
        };
        let raw = match all.get(WHOLE).filter(|whole| self.whole && whole.starts_with('{')) {
            Some(whole) => whole.to_owned(),
            None => all.to_json(),
        };
        let object = serde_json::from_str(&raw).map_err(|error| ArgumentError::Json(error.to_string()))?;
        Ok(ServerArguments { object, raw: RawArguments(raw.into()) })
    }

    fn read_texts(&self, texts: &BTreeMap<String, String>) -> Result<Arguments, ArgumentError> {
        let mut all = Arguments::default();
        for (name, text) in texts {
            let anything = ParameterKinds { kinds: Kinds::ANY, is_optional: true };
            let taken = self.kinds.get(name).copied().unwrap_or(anything);
            match read_text(text, taken) {
                Some(Reading::String(text)) => all.insert_string(name, text),
                Some(Reading::Json(json)) => all.insert_json(name, json),
                Some(Reading::LeftOut) => {}
                None => {
                    let shown = cut(text, MAX_SHOWN_BYTES);
                    return Err(ArgumentError::Kind { name: name.clone(), shown, kinds: taken.kinds });
                }
            }
        }
        Ok(all)
    }
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

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
