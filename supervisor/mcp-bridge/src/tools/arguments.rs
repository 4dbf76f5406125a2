//! Converts the arguments of a call to the JSON that a server takes.
//!
//! Where the caller sent JSON, the server gets that: every value with its type, and numbers with all their
//! digits. Of texts the rules of `talon_arguments` decide, as in the guard.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use talon_arguments::{Arguments, ParameterKinds, WrongKindError, read_texts};
use talon_sdk::proto::Parameter;

use super::schema::{Parameters, WHOLE};
use crate::server::request_text::RawArguments;

/// The arguments cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// One is not of its parameter's kind.
    #[error(transparent)]
    Kind(#[from] WrongKindError),
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
            None => read_texts(texts, &self.kinds)?,
        };
        let raw = match all.get(WHOLE).filter(|whole| self.whole && whole.starts_with('{')) {
            Some(whole) => whole.to_owned(),
            None => all.to_json(),
        };
        let object = serde_json::from_str(&raw).map_err(|error| ArgumentError::Json(error.to_string()))?;
        Ok(ServerArguments { object, raw: RawArguments(raw.into()) })
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
