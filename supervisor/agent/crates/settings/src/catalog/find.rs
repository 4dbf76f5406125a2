//! Finds a model by name.

use std::fmt;

use super::entry::CatalogEntry;
use talon_sanitize::nearest;

/// No model has this name, or several have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModelError {
    /// The requested name, truncated.
    pub requested: String,
    /// All matches, if there are several.
    pub ambiguous: Vec<String>,
    /// The most similar names, the nearest first.
    pub nearest: Vec<String>,
}

/// How much of the requested name is repeated.
const MAX_SHOWN_CHARS: usize = 80;

pub(super) fn find<'c>(
    entries: &'c [CatalogEntry],
    requested: &str,
) -> Result<&'c CatalogEntry, UnknownModelError> {
    if let Some(entry) = entries
        .iter()
        .find(|entry| is_id(entry, requested) || entry.model.alias.as_deref() == Some(requested))
    {
        return Ok(entry);
    }
    let same_name: Vec<&CatalogEntry> = entries.iter().filter(|entry| entry.id.name == requested).collect();
    if let [entry] = same_name[..] {
        return Ok(entry);
    }
    let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
    let aliases = entries.iter().filter_map(|entry| entry.model.alias.as_deref());
    let names = ids
        .iter()
        .map(String::as_str)
        .chain(aliases)
        .chain(entries.iter().map(|entry| entry.id.name.as_str()));
    Err(UnknownModelError {
        requested: requested.chars().take(MAX_SHOWN_CHARS).collect(),
        ambiguous: same_name.iter().map(|entry| entry.id.to_string()).collect(),
        nearest: nearest(requested, names),
    })
}

fn is_id(entry: &CatalogEntry, requested: &str) -> bool {
    requested
        .split_once('/')
        .is_some_and(|(provider, name)| provider == entry.id.provider && name == entry.id.name)
}

impl fmt::Display for UnknownModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requested, ambiguous, nearest } = self;
        if ambiguous.is_empty() {
            write!(f, "no model is called {requested:?}")?;
        } else {
            write!(f, "several models are called {requested:?}: {}", ambiguous.join(", "))?;
        }
        match nearest[..] {
            _ if !ambiguous.is_empty() => write!(f, "; write the provider with it"),
            [] => write!(f, "; `talon model list` shows those there are"),
            _ => write!(f, "; the nearest are {}; `talon model list` shows all", nearest.join(", ")),
        }
    }
}

impl std::error::Error for UnknownModelError {}
