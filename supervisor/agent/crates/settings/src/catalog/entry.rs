//! A model in a catalog, and its name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::Model;

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
