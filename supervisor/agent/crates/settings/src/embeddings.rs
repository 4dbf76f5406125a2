//! `models.embeddings`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Price, TimeSpan};

/// The model that makes vectors of texts, by which tools are found that are described in other words or in
/// another language than they are searched in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingKeys {
    /// The provider, by its name in `models.providers`; of the kind `openai` or `ollama`.
    #[schemars(example = &"ollama")]
    pub provider: String,
    /// The model, by the provider's own name for it. It needs no entry in `models.catalog`.
    #[schemars(example = &"nomic-embed-text")]
    pub model: String,
    /// How many numbers a vector has, for models that can shorten them. Default: the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub dimensions: Option<u32>,
    /// What a query begins with, for models that are trained so: `search_query: ` for nomic-embed-text,
    /// `query: ` for the family of e5.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query_prefix: String,
    /// What the text of a tool, and of a memory, begins with: `search_document: ` for nomic-embed-text, `query: ` for e5.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_prefix: String,
    /// What a million tokens of texts cost in US dollars. Vectors that clients ask for at `/v1/embeddings` are charged to who asks:
    /// to the day, and to `models.budget.per_session` as if all that one sender asks on a day were one session. Left out: they
    /// are not counted as costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &0.02)]
    pub cost: Option<Price>,
    /// How long a search, and a turn that recalls memories, waits for vectors. Later, it is by words alone, and says so.
    #[serde(default = "timeout")]
    pub timeout: TimeSpan,
}

/// 2 s: a local model needs some 10 ms and a service some 200 ms for a query; a person waits.
const fn timeout() -> TimeSpan {
    TimeSpan::from_secs(2)
}
