//! Builds providers from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_agent_settings::EntryProblem;

use super::{Config, Environment, Protocol, ProviderEntry};
use crate::anthropic::Anthropic;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::provider::Provider;
use crate::remote::{Endpoint, EndpointError, Remote};
use crate::responses::Responses;
use crate::scripted::{ScriptError, Scripted};

/// The usable providers, and the problems of the others.
#[derive(Default)]
pub struct Providers {
    /// The providers by name.
    pub ready: BTreeMap<String, Arc<dyn Provider>>,
    /// All problems at once. An entry with a problem is not among the usable providers.
    pub problems: Vec<Problem>,
}

/// A problem of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("provider {provider}: {message}")]
pub struct Problem {
    /// The entry's name.
    pub provider: String,
    /// The problem and what to do; contains no key.
    pub message: String,
}

/// Builds all providers from the configuration and the files and variables that it names: in the agent a
/// [`talon_agent_settings::SettingsBundle`].
///
/// Keys are read only here, so a changed key needs new providers.
#[must_use]
pub fn providers(config: &Config, environment: &dyn Environment) -> Providers {
    let mut made = Providers::default();
    for (name, entry) in &config.0 {
        match provider(name, entry, environment) {
            Ok(provider) => drop(made.ready.insert(name.clone(), provider)),
            Err(errors) => made.problems.extend(
                errors.iter().map(|error| Problem { provider: name.clone(), message: error.to_string() }),
            ),
        }
    }
    made
}

/// Why an entry makes no provider.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error(transparent)]
    Entry(#[from] EntryProblem),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// All that is wrong with the entry, or its provider.
fn provider(
    name: &str,
    entry: &ProviderEntry,
    environment: &dyn Environment,
) -> Result<Arc<dyn Provider>, Vec<BuildError>> {
    let mut wrong: Vec<BuildError> = entry.problems(name).into_iter().map(BuildError::from).collect();
    match client(name, entry, environment) {
        Ok(provider) if wrong.is_empty() => return Ok(provider),
        Ok(_) => {}
        Err(errors) => wrong.extend(errors),
    }
    Err(wrong)
}

/// The client of the kind's protocol.
fn client(
    name: &str,
    entry: &ProviderEntry,
    environment: &dyn Environment,
) -> Result<Arc<dyn Provider>, Vec<BuildError>> {
    let endpoint = || {
        Endpoint::build(name, entry, environment)
            .map_err(|errors| errors.into_iter().map(BuildError::from).collect::<Vec<_>>())
    };
    Ok(match entry.kind.protocol() {
        Protocol::Scripted => {
            let loaded = Scripted::load(name, entry.file.as_deref(), entry.timeouts, environment);
            Arc::new(loaded.map_err(|error| vec![error.into()])?)
        }
        Protocol::Chat => {
            let endpoint = endpoint()?;
            let named = entry.dialect.or_else(|| entry.kind.dialect());
            let dialect = named.unwrap_or_else(|| crate::openai::dialect_of(endpoint.base()));
            Arc::new(Remote::new(endpoint, OpenAi::new(name, dialect)))
        }
        Protocol::Responses => Arc::new(Remote::new(endpoint()?, Responses::new(name))),
        Protocol::Messages => {
            Arc::new(Remote::new(endpoint()?, Anthropic::new(name, entry.searches_tools())))
        }
        Protocol::Gemini => Arc::new(Remote::new(endpoint()?, Gemini::new(name))),
        Protocol::Ollama => Arc::new(Remote::new(endpoint()?, Ollama::new(entry.num_ctx))),
    })
}
