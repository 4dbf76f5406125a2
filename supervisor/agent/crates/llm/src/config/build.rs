//! Builds providers from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Config, Environment, ProviderEntry, ProviderKind};
use crate::anthropic::Anthropic;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::provider::Provider;
use crate::remote::{Endpoint, Remote};
use crate::scripted::Scripted;

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
            Err(messages) => made
                .problems
                .extend(messages.into_iter().map(|message| Problem { provider: name.clone(), message })),
        }
    }
    made
}

fn provider(
    name: &str,
    entry: &ProviderEntry,
    environment: &dyn Environment,
) -> Result<Arc<dyn Provider>, Vec<String>> {
    let mut wrong: Vec<String> = entry.problems(name).iter().map(ToString::to_string).collect();
    let endpoint = || {
        let built = Endpoint::build(name, entry, environment);
        built.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let made: Result<Arc<dyn Provider>, Vec<String>> = match entry.kind {
        ProviderKind::Scripted => Scripted::load(name, entry.file.as_deref(), entry.timeouts, environment)
            .map(|scripted| Arc::new(scripted) as Arc<dyn Provider>)
            .map_err(|error| vec![error.to_string()]),
        ProviderKind::Openai => endpoint().map(|endpoint| {
            let dialect = entry.dialect.unwrap_or_else(|| crate::openai::dialect_of(endpoint.base()));
            let protocol = OpenAi::new(name, dialect);
            Arc::new(Remote::new(endpoint, protocol)) as _
        }),
        ProviderKind::Anthropic => {
            endpoint().map(|endpoint| Arc::new(Remote::new(endpoint, Anthropic::new(name))) as _)
        }
        ProviderKind::Ollama => {
            endpoint().map(|endpoint| Arc::new(Remote::new(endpoint, Ollama::new(entry.num_ctx))) as _)
        }
    };
    match made {
        Ok(provider) if wrong.is_empty() => Ok(provider),
        Ok(_) => Err(wrong),
        Err(more) => {
            wrong.extend(more);
            Err(wrong)
        }
    }
}
