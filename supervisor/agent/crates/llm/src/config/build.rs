//! From the configuration to providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Config, Entry, Kind};
use crate::anthropic::Anthropic;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::provider::Provider;
use crate::remote::{Endpoint, Remote};
use crate::scripted::Scripted;

/// Looks environment variables up.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The longest name of a provider. It stands in every message and metric.
const MAX_NAME_BYTES: usize = 64;

/// The providers that can be asked, and what is wrong with the others.
#[derive(Default)]
pub struct Providers {
    /// By their names.
    pub ready: BTreeMap<String, Arc<dyn Provider>>,
    /// All that is wrong, at once. An entry with a problem is not among those that are ready.
    pub problems: Vec<Problem>,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("provider {provider}: {message}")]
pub struct Problem {
    /// Whose.
    pub provider: String,
    /// What it is and what to do; holds no key.
    pub message: String,
}

/// The environment of this process.
#[must_use]
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Makes all providers. Keys are read here and then never again, so a changed key needs a new set.
#[must_use]
pub fn providers(config: &Config, env: &Environment<'_>) -> Providers {
    let mut made = Providers::default();
    for (name, entry) in &config.0 {
        match provider(name, entry, env) {
            Ok(provider) => drop(made.ready.insert(name.clone(), provider)),
            Err(messages) => made
                .problems
                .extend(messages.into_iter().map(|message| Problem { provider: name.clone(), message })),
        }
    }
    made
}

fn provider(name: &str, entry: &Entry, env: &Environment<'_>) -> Result<Arc<dyn Provider>, Vec<String>> {
    let mut wrong = misplaced(name, entry);
    let made: Result<Arc<dyn Provider>, Vec<String>> = match entry.kind {
        Kind::Scripted => Scripted::load(name, entry.file.as_deref(), entry.timeouts)
            .map(|scripted| Arc::new(scripted) as Arc<dyn Provider>)
            .map_err(|error| vec![error.to_string()]),
        Kind::Openai => Endpoint::build(name, entry, env).map(|endpoint| {
            let dialect = entry.dialect.unwrap_or_else(|| crate::openai::dialect_of(endpoint.base()));
            let protocol = OpenAi::new(name, dialect);
            Arc::new(Remote::new(endpoint, protocol)) as _
        }),
        Kind::Anthropic => Endpoint::build(name, entry, env)
            .map(|endpoint| Arc::new(Remote::new(endpoint, Anthropic::new(name))) as _),
        Kind::Ollama => Endpoint::build(name, entry, env)
            .map(|endpoint| Arc::new(Remote::new(endpoint, Ollama::new(entry.num_ctx))) as _),
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

/// Keys that say nothing to this kind. They are slips, and to pass over them would hide that they do nothing.
fn misplaced(name: &str, entry: &Entry) -> Vec<String> {
    let mut wrong = Vec::new();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(fits) {
        wrong.push(format!("its name has to be 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' or '.'"));
    }
    let scripted = entry.kind == Kind::Scripted;
    if scripted && name != "scripted" && !name.starts_with("scripted-") {
        wrong.push(
            "no model answers here, so its name has to say so: call it \"scripted\", or \"scripted-\" and more".to_owned(),
        );
    }
    if !scripted && (name == "scripted" || name.starts_with("scripted-")) {
        wrong.push("this name is kept for kind: scripted".to_owned());
    }
    let only = |is_set: bool, key: &str, kind: &str| {
        is_set.then(|| format!("{key} is for kind: {kind} alone: remove it, or change the kind"))
    };
    wrong.extend(only(entry.dialect.is_some() && entry.kind != Kind::Openai, "dialect", "openai"));
    wrong.extend(only(entry.num_ctx.is_some() && entry.kind != Kind::Ollama, "num_ctx", "ollama"));
    wrong.extend(only(entry.file.is_some() && !scripted, "file", "scripted"));
    let remote = [
        (entry.base_url.is_some(), "base_url"),
        (!entry.sources().is_empty(), "a key"),
        (!entry.headers.is_empty(), "headers"),
        (entry.proxy.is_some(), "proxy"),
        (entry.ca_file.is_some(), "ca_file"),
    ];
    for (is_set, key) in remote {
        if scripted && is_set {
            wrong.push(format!("{key} says nothing to kind: scripted, which asks nobody: remove it"));
        }
    }
    wrong
}
