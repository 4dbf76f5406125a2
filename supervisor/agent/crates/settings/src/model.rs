//! One entry of `models.catalog`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Price;
use crate::tier::Tier;

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
