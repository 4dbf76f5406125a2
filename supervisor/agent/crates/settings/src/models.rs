//! `models`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Budget, CatalogKeys, EmbeddingKeys, FallbackKeys, ProviderEntry, Thinking};

/// The models that the agent asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelKeys {
    /// The providers, by name. The catalog and all messages use this name. [providers.md](providers.md) has
    /// examples.
    ///
    /// At its start and at each reload, the supervisor reads the files and variables that are named here, as
    /// its own user and from its own environment. It passes them to the agent, which can read neither.
    #[schemars(extend("x-key" = "provider"))]
    pub providers: ProviderKeys,
    /// The models, by provider and name with a slash between them: `openai/gpt-4o-mini`. The name is the
    /// provider's own and may contain slashes. [models.md](models.md) explains how a model is chosen.
    pub catalog: CatalogKeys,
    /// What happens when a model fails.
    pub fallback: FallbackKeys,
    /// The most that may be spent. Default: no limit.
    ///
    /// A request whose estimate exceeds the rest of the budget is not sent; a limit never chooses another
    /// model. Requests that cost nothing are always sent.
    pub budget: Budget,
    /// The model that is asked first for questions of moderate complexity and for going on with tools, by
    /// provider/name or alias. It pins nothing: the others stand behind it. Simple questions, sub-agents and
    /// summaries go to the cheapest suitable model, complex ones to the best. Default: by tier, priority and
    /// cost.
    pub default: Option<String>,
    /// The model that summarizes, by provider/name or alias. A pin of a request or session is stronger.
    /// Default: the cheapest suitable one.
    pub summaries: Option<String>,
    /// The model that makes vectors of texts, by which tools and memories are found that are described in other
    /// words. Without it, they are found by words alone. [tool-search.md](tool-search.md) and [recall.md](recall.md) have
    /// what it brings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingKeys>,
    /// Only providers on this machine may see what sessions say, with summaries and sub-agents. A session can
    /// require that for itself, and none can loosen it.
    pub local_only: bool,
    /// How long models think.
    pub thinking: Thinking,
}

/// The providers, by name. Routes and messages use this name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderKeys(pub BTreeMap<String, ProviderEntry>);
