//! One entry of `models.catalog`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Price;
use crate::sampling::{Sampling, SamplingNumber};
use crate::thinking::Thinking;
use crate::tier::Tier;

/// The models, by provider and name with a slash between them: `openai/gpt-4o-mini`.
///
/// The provider has to be configured. The name is the provider's own and may contain slashes, as those of
/// OpenRouter do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CatalogKeys(pub BTreeMap<String, Model>);

/// One model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// A short name that hooks, sub-agents and people can use: `small`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The class: `cheap`, `mid` or `premium`.
    pub tier: Tier,
    /// The most tokens of question and answer together.
    #[schemars(range(min = 1))]
    pub context_window: u64,
    /// The most tokens of an answer. Default: as many as the window has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// Whether it can call tools.
    #[serde(default)]
    pub tools: bool,
    /// Whether it can process images.
    #[serde(default)]
    pub vision: bool,
    /// What it costs. Required unless `free` is set, since an unknown cost can be neither shown nor limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// It costs nothing: your own model, or a free offer.
    #[serde(default)]
    pub free: bool,
    /// Of several models with the same cost, the one with the highest weight is asked first.
    ///
    /// 100 leaves room on both sides. From 1 to 1000.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: u32,
    /// Its place in the chain of models, before their cost: the lowest is asked first. Default: its provider's
    /// `priority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub priority: Option<u32>,
    /// How freely it chooses its words, if a session or request says nothing: from 0, always the likeliest one,
    /// to 2. Default: the provider's. Not sent to models that take none: Claude from 4.7 on, Claude that thinks,
    /// and OpenAI's thinking models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<SamplingNumber>,
    /// Of how much of all likelihood it chooses its words, above 0 and at most 1, if a session or request says
    /// nothing. Default: the provider's. Not sent where `temperature` is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<SamplingNumber>,
    /// The tokens of an answer that are asked for if a request says nothing: at most `max_output_tokens`.
    /// Default: none, so that the provider decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How much it thinks, if a session or request says nothing. Default: `models.thinking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
}

fn default_weight() -> u32 {
    100
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The question.
    pub input: Price,
    /// The part of the question that the provider had in its cache. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Price>,
    /// The part of the question that the provider wrote to its cache. Default: as `input`; Anthropic's is a
    /// quarter higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Price>,
    /// The answer, including thinking.
    pub output: Price,
}

impl Model {
    /// Its prices; zero for a free model.
    #[must_use]
    pub fn prices(&self) -> Cost {
        self.cost.unwrap_or_default()
    }

    /// How it chooses its words.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        Sampling { temperature: self.temperature, top_p: self.top_p, max_tokens: self.max_tokens }
    }

    /// The most tokens that an answer may have.
    #[must_use]
    pub fn output_limit(&self) -> u64 {
        self.max_output_tokens.map_or(self.context_window, u64::from)
    }
}
