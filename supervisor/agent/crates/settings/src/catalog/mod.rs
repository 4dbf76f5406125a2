//! `models.catalog`: the models, their abilities and their prices.
//!
//! [`CatalogKeys`] are the keys as an operator writes them; a [`Catalog`] contains the checked models. All
//! problems are reported at once, each with its key and what to do.

mod check;
mod entry;
mod find;

use std::collections::BTreeSet;

pub use self::check::{CatalogProblem, CatalogProblems, MAX_MODELS, MAX_WEIGHT};
pub use self::entry::{CatalogEntry, ModelRef, ParseModelRefError};
pub use self::find::UnknownModelError;
pub use crate::model::{CatalogKeys, Cost, Model};

/// The checked models, by provider and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    entries: Vec<CatalogEntry>,
}

impl Catalog {
    /// Checks the keys as a whole.
    ///
    /// # Errors
    /// [`CatalogProblems`], all of them at once.
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

    /// The model that a person or a configuration refers to: by provider and name, by its alias, or by its
    /// name alone if only one provider has it.
    ///
    /// # Errors
    /// [`UnknownModelError`], with the nearest ones.
    pub fn find(&self, name: &str) -> Result<&CatalogEntry, UnknownModelError> {
        find::find(&self.entries, name)
    }
}

#[cfg(test)]
mod tests;
