//! `models`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Budget, CatalogKeys, FallbackKeys, ProviderEntry};

/// Whom the agent asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelKeys {
    /// Who has models, each under the name by which the catalog and all messages call it. [providers.md](providers.md) has examples.
    ///
    /// The supervisor's own user reads the files that are named here, and looks the variables up in its environment, when it starts and at
    /// each reload; it hands them to the agent, which can read neither.
    #[schemars(extend("x-key" = "provider"))]
    pub providers: ProviderKeys,
    /// The models, by provider and name with a slash between them: `openai/gpt-4o-mini`. The name is the provider's own and may have slashes
    /// of its own. [models.md](models.md) tells how one is chosen.
    pub catalog: CatalogKeys,
    /// What happens when a model fails.
    pub fallback: FallbackKeys,
    /// The most that may be spent. Without a limit nothing is stopped.
    ///
    /// A limit stops: it never chooses another model. A request whose estimate goes beyond what is left is not asked. What costs nothing is
    /// never stopped.
    pub budget: Budget,
    /// The model that answers, by provider/name or alias, where a session does not choose. Without it, the cheapest that can.
    pub default: Option<String>,
    /// How long models think.
    pub thinking: Thinking,
}

/// The providers, each under the name by which routes and messages call it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderKeys(pub BTreeMap<String, ProviderEntry>);

/// `thinkingLevel`: how much a model should think before it answers.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not at all, where that can be had.
    #[default]
    Off,
    /// Shortly.
    Low,
    /// As long as it takes for most things.
    Medium,
    /// Long.
    High,
}
