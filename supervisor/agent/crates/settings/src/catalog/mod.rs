//! `models.catalog`: the models, their abilities and their prices.
//!
//! [`CatalogKeys`] are the keys as an operator writes them; a [`Catalog`] contains the checked models. All problems are
//! reported at once, each with its key and what to do.

mod check;
mod find;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::check::{CatalogProblem, CatalogProblems, MAX_MODELS, MAX_WEIGHT};
pub use self::find::UnknownModelError;
pub use crate::model::{CatalogKeys, Cost, Model};

/// A model by its provider and its provider's name for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's own name for the model.
    pub name: String,
}

/// It has no slash, or nothing on one side of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a model is written as its provider and its name with a slash between them, such as openai/gpt-4o-mini"
)]
pub struct ParseModelRefError;

impl FromStr for ModelRef {
    type Err = ParseModelRefError;
    fn from_str(text: &str) -> Result<Self, ParseModelRefError> {
        match text.split_once('/') {
            Some((provider, name)) if !provider.is_empty() && !name.is_empty() => {
                Ok(Self { provider: provider.to_owned(), name: name.to_owned() })
            }
            _ => Err(ParseModelRefError),
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

impl Serialize for ModelRef {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A checked model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The model's id.
    pub id: ModelRef,
    /// The operator's keys.
    pub model: Model,
}

/// The checked models, by provider and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    entries: Vec<CatalogEntry>,
}

impl Catalog {
    /// Checks the keys as a whole.
    ///
    /// # Errors
    /// [`Problems`], all of them at once.
    pub fn new(keys: &CatalogKeys, providers: &BTreeSet<String>) -> Result<Self, CatalogProblems> {
        check::check(keys, providers).map(|entries| Self { entries })
    }

    /// All models, by provider and name.
    #[must_use]
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// The model with exactly this provider and name.
    #[must_use]
    pub fn get(&self, id: &ModelRef) -> Option<&CatalogEntry> {
        let found = self.entries.binary_search_by(|entry| entry.id.cmp(id)).ok()?;
        self.entries.get(found)
    }

    /// The model that a person or a configuration refers to: by provider and name, by its alias, or by its name alone
    /// if only one provider has it.
    ///
    /// # Errors
    /// [`UnknownModel`], with the nearest ones.
    pub fn find(&self, asked: &str) -> Result<&CatalogEntry, UnknownModelError> {
        find::find(&self.entries, asked)
    }
}

#[cfg(test)]
mod tests;
