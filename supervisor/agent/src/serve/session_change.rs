//! What a client wants of a session otherwise.

use std::collections::BTreeMap;

use talon_agent_settings::{Sampling, is_pattern};
use talon_proto::agent::{self, ToolList};
use talon_store::SessionChange;
use talon_store::limits::MAX_METADATA_VALUE_BYTES;
use tonic::Status;

use super::limits::{MAX_NOTED, MAX_PATTERNS};
use super::sampling::known_sampling;
use super::service::Service;
use crate::agent::{LOCAL_ONLY, OWN_KEYS, SAMPLING, TOOLS, VERBOSE, known_model, known_thinking};
use crate::prompt::Verbosity;

/// What a client wants of a session otherwise. An absent field stays, and an empty one is as configured.
pub(super) struct RequestedChange {
    pub(super) model: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) verbosity: Option<String>,
    pub(super) tools: Option<ToolList>,
    pub(super) local_only: Option<bool>,
    pub(super) sampling: Option<agent::Sampling>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) verbose: Option<bool>,
}

impl RequestedChange {
    /// The names of what is set, as the protocol has them.
    pub(super) fn fields(&self) -> Vec<String> {
        let set = [
            ("model", self.model.is_some()),
            ("thinking", self.thinking.is_some()),
            ("verbosity", self.verbosity.is_some()),
            ("tools", self.tools.is_some()),
            ("local_only", self.local_only.is_some()),
            ("sampling", self.sampling.is_some()),
            ("verbose", self.verbose.is_some()),
        ];
        let named = set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
        named.chain(self.metadata.keys().map(|key| format!("metadata.{key}"))).collect()
    }
}

impl Service {
    /// The changes to a session: an absent field stays, and an empty one is reset to the configuration.
    pub(super) fn change(&self, requested: RequestedChange) -> Result<SessionChange, Status> {
        let RequestedChange {
            model,
            thinking,
            verbosity,
            tools,
            local_only,
            sampling,
            metadata: noted,
            verbose,
        } = requested;
        let setup = self.agent.setup();
        let model = model.map(|model| known_model(&setup, &model)).transpose()?;
        let thinking =
            thinking.map(|word| known_thinking(&word).map(|known| known.map(|_| word))).transpose()?;
        let verbosity = verbosity.map(known_verbosity).transpose()?;
        let mut metadata = client_metadata(noted)?;
        if let Some(ToolList { tools }) = tools {
            let tools = known_patterns(tools)?;
            let json = (!tools.is_empty()).then(|| serde_json::to_string(&tools).unwrap_or_default());
            if json.as_ref().is_some_and(|json| json.len() > MAX_METADATA_VALUE_BYTES) {
                return Err(Status::invalid_argument(format!(
                    "the patterns have more than {MAX_METADATA_VALUE_BYTES} bytes together: write some as plugin.*"
                )));
            }
            metadata.insert(TOOLS.to_owned(), json);
        }
        if let Some(local_only) = local_only {
            metadata.insert(LOCAL_ONLY.to_owned(), local_only.then(|| "true".to_owned()));
        }
        if let Some(verbose) = verbose {
            metadata.insert(VERBOSE.to_owned(), verbose.then(|| "true".to_owned()));
        }
        if sampling.is_some() {
            let sampling = known_sampling(sampling)?;
            let json = (sampling != Sampling::default())
                .then(|| serde_json::to_string(&sampling).unwrap_or_default());
            metadata.insert(SAMPLING.to_owned(), json);
        }
        Ok(SessionChange { model, thinking, verbosity, metadata, ..SessionChange::default() })
    }
}

/// Checks what clients note about a session; the store has the other bounds.
fn client_metadata(noted: BTreeMap<String, String>) -> Result<BTreeMap<String, Option<String>>, Status> {
    if noted.len() > MAX_NOTED {
        return Err(Status::invalid_argument(format!(
            "{} metadata entries are more than {MAX_NOTED}: keep what belongs together in one",
            noted.len()
        )));
    }
    if let Some(own) = OWN_KEYS.iter().find(|own| noted.contains_key(**own)) {
        return Err(Status::invalid_argument(format!(
            "metadata: the key {own} is the agent's own; the session's fields set it, or choose another"
        )));
    }
    Ok(noted.into_iter().map(|(key, value)| (key, Some(value).filter(|value| !value.is_empty()))).collect())
}

/// Checks how detailed answers are to be; `None` for an empty word.
pub(super) fn known_verbosity(word: String) -> Result<Option<String>, Status> {
    if word.is_empty() {
        return Ok(None);
    }
    if Verbosity::parse(&word).is_none() {
        return Err(Status::invalid_argument("how detailed answers are is low or high"));
    }
    Ok(Some(word))
}

/// Checks that each pattern can match something.
pub(super) fn known_patterns(tools: Vec<String>) -> Result<Vec<String>, Status> {
    if tools.len() > MAX_PATTERNS {
        return Err(Status::invalid_argument(format!(
            "{} patterns are more than {MAX_PATTERNS}: what holds for all sessions belongs into agent.allow",
            tools.len()
        )));
    }
    match tools.iter().find(|pattern| !is_pattern(pattern)) {
        None => Ok(tools),
        Some(wrong) => {
            let shown: String = wrong.chars().take(80).filter(|c| !c.is_control()).collect();
            Err(Status::invalid_argument(format!("{shown:?} is no pattern: write plugin.action or plugin.*")))
        }
    }
}
