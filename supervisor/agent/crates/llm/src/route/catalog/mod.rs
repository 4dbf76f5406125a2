//! `models.catalog`: which models there are, what they can do and what they cost.
//!
//! [`CatalogKeys`] are the keys as an operator writes them; a [`Catalog`] is what is left of them when everything was found to
//! be in order. All that is wrong is told at once, each with its key and what to do.

mod check;
mod find;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::check::{MAX_MODELS, MAX_WEIGHT, Problem, Problems};
pub use self::find::UnknownModel;
use super::money::Price;
use super::task::Tier;

/// The models, by provider and name with a slash between them: `openai/gpt-4o-mini`.
///
/// The provider is one of those that are configured; the name is the provider's own and may have slashes of its own, as those
/// of OpenRouter do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CatalogKeys(pub BTreeMap<String, Model>);

/// One model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// A short name for it, by which hooks, sub-agents and people may call it: `small`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Its class: `cheap`, `mid` or `premium`.
    pub tier: Tier,
    /// How many tokens question and answer may have together.
    #[schemars(range(min = 1))]
    pub context_window: u64,
    /// How many tokens an answer may have. Without it, as many as the window has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// Whether it can call tools.
    #[serde(default)]
    pub tools: bool,
    /// Whether it can look at pictures.
    #[serde(default)]
    pub vision: bool,
    /// What it costs. Needed unless it is `free`, since a cost that nobody knows can be neither shown nor limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// It costs nothing: a model of your own, or one that is given away.
    #[serde(default)]
    pub free: bool,
    /// Of several that cost the same, the heaviest is asked first.
    ///
    /// 100 leaves room on both sides. From 1 to 1000.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: u32,
}

fn default_weight() -> u32 {
    100
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Of the question.
    pub input: Price,
    /// Of the part of the question that the provider had in its cache. Without it, as the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Price>,
    /// Of the answer, and of what was thought for it.
    pub output: Price,
}

impl Model {
    /// Its prices; nothing for a free one.
    #[must_use]
    pub fn prices(&self) -> Cost {
        self.cost.unwrap_or_default()
    }

    /// The most tokens that an answer may have.
    #[must_use]
    pub fn output_limit(&self) -> u64 {
        self.max_output_tokens.map_or(self.context_window, u64::from)
    }
}

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
pub struct NoModelRef;

impl FromStr for ModelRef {
    type Err = NoModelRef;
    fn from_str(text: &str) -> Result<Self, NoModelRef> {
        match text.split_once('/') {
            Some((provider, name)) if !provider.is_empty() && !name.is_empty() => {
                Ok(Self { provider: provider.to_owned(), name: name.to_owned() })
            }
            _ => Err(NoModelRef),
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

/// A model that was found to be in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is.
    pub id: ModelRef,
    /// What is known of it.
    pub model: Model,
}

/// Models that were found to be in order, by provider and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    entries: Vec<Entry>,
}

impl Catalog {
    /// Checks the keys as a whole.
    ///
    /// # Errors
    /// [`Problems`], all of them at once.
    pub fn new(keys: &CatalogKeys, providers: &BTreeSet<String>) -> Result<Self, Problems> {
        check::check(keys, providers).map(|entries| Self { entries })
    }

    /// All models, by provider and name.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The one of exactly this provider and name.
    #[must_use]
    pub fn get(&self, id: &ModelRef) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|entry| entry.id.cmp(id)).ok()?;
        self.entries.get(found)
    }

    /// The one that a person or a configuration means: by provider and name, by its alias, or by its name alone where only one
    /// provider has it.
    ///
    /// # Errors
    /// [`UnknownModel`], with the nearest ones.
    pub fn find(&self, asked: &str) -> Result<&Entry, UnknownModel> {
        find::find(&self.entries, asked)
    }
}

#[cfg(test)]
mod tests;
