//! The operator's embedding model, as all that compares texts asks it.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use talon_agent_settings::EmbeddingKeys;
use talon_llm::Provider;
use talon_llm::limits::MAX_EMBEDDED_CHARS;
use talon_llm::model::{EmbeddingRequest, ProviderError};
use talon_llm::route::catalog::ModelRef;
use talon_store::Vector;

/// The model of `models.embeddings`.
#[derive(Clone)]
pub struct Embedder {
    provider: Arc<dyn Provider>,
    keys: EmbeddingKeys,
    is_local: bool,
}

impl Embedder {
    /// By the operator's keys. `is_local` says whether the provider is on this machine.
    #[must_use]
    pub fn new(keys: &EmbeddingKeys, provider: Arc<dyn Provider>, is_local: bool) -> Self {
        Self { provider, keys: keys.clone(), is_local }
    }

    /// The vector of what is searched for; its first [`MAX_EMBEDDED_CHARS`].
    pub(crate) async fn query(&self, text: &str) -> Result<Option<Vector>, ProviderError> {
        let texts = vec![format!("{}{}", self.keys.query_prefix, beginning(text))];
        Ok(self.embed(texts, self.keys.timeout.get()).await?.pop())
    }

    /// The vectors of what is found, at most [`talon_llm::limits::MAX_EMBEDDED_TEXTS`].
    pub(crate) async fn documents(
        &self,
        texts: &[String],
        timeout: Duration,
    ) -> Result<Vec<Vector>, ProviderError> {
        let texts = texts.iter().map(|text| format!("{}{}", self.keys.tool_prefix, beginning(text)));
        self.embed(texts.collect(), timeout).await
    }

    /// The vectors of texts as they are, as the model gives them.
    pub(crate) async fn plain(
        &self,
        texts: Vec<String>,
        timeout: Duration,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let EmbeddingKeys { model, dimensions, .. } = &self.keys;
        let request = EmbeddingRequest { model: model.clone(), texts, dimensions: *dimensions, timeout };
        self.provider.embed(&request).await
    }

    async fn embed(&self, texts: Vec<String>, timeout: Duration) -> Result<Vec<Vector>, ProviderError> {
        let vectors = self.plain(texts, timeout).await?;
        Ok(vectors.iter().map(|numbers| Vector::of(numbers)).collect())
    }

    /// The model, as provider/name.
    #[must_use]
    pub fn model(&self) -> String {
        format!("{}/{}", self.keys.provider, self.keys.model)
    }

    /// The model, for the ledger.
    pub(crate) fn model_ref(&self) -> ModelRef {
        ModelRef { provider: self.keys.provider.clone(), name: self.keys.model.clone() }
    }

    /// Whether it is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// The operator's keys.
    pub(crate) fn keys(&self) -> &EmbeddingKeys {
        &self.keys
    }

    /// A name of what its vectors can be compared with: those of the same model, made in the same way.
    pub(crate) fn space(&self) -> String {
        let EmbeddingKeys { provider, model, dimensions, tool_prefix, query_prefix: _, cost: _, timeout: _ } =
            &self.keys;
        let made = serde_json::json!([provider, model, dimensions, tool_prefix]).to_string();
        hex::encode(&Sha256::digest(made)[..16])
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_EMBEDDED_CHARS).collect()
}
