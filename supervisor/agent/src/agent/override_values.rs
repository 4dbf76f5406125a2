//! What a session or a request may want otherwise than the configuration, by its words.

use talon_agent_settings::{Thinking, Tier};
use tonic::Status;

use super::setup::Setup;
use super::spec::thinking;

/// Checks the name of a model; `None` for an empty one.
pub(crate) fn known_model(setup: &Setup, model: &str) -> Result<Option<String>, Status> {
    if model.is_empty() {
        return Ok(None);
    }
    match setup.environment.chain.catalog().find(model) {
        Ok(_) => Ok(Some(model.to_owned())),
        Err(_) if Tier::of_route(model).is_some() => Ok(Some(model.to_owned())),
        Err(unknown) => Err(Status::invalid_argument(talon_child::truncate(unknown.to_string()))),
    }
}

/// Parses how long a model thinks; `None` for the configured value.
pub(crate) fn known_thinking(word: &str) -> Result<Option<Thinking>, Status> {
    if word.is_empty() {
        return Ok(None);
    }
    let unknown = || Status::invalid_argument("how long a model thinks is off, low, medium or high");
    thinking(word).map(Some).ok_or_else(unknown)
}
