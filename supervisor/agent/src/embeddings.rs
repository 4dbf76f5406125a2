//! The embedding model, and vectors of the tools' texts for searches by meaning.
//!
//! A tool's vector is made once for its text and model and stored (`VectorCache`). It is made when a search
//! needs it, by one task for all searches, which continues where a search has no more time. A query's vector is
//! made for each search.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_agent_settings::TimeSpan;
use talon_llm::limits::MAX_EMBEDDED_TEXTS;
use talon_llm::model::ProviderError;
use talon_store::{KeyValues, Vector};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::driver::{SimilarityError, ToolSimilarity};

mod cache;
mod embedder;

use cache::VectorCache;
pub use embedder::Embedder;

/// The time for each request for tools' vectors. No search waits for it; a model on this machine that is being
/// loaded needs it for a hundred texts.
const BATCH_TIMEOUT: TimeSpan = TimeSpan::from_secs(60);

/// Compares tools with queries by the vectors of one model.
pub struct ToolVectors {
    timeout: TimeSpan,
    shared: Arc<Shared>,
}

/// What the task that makes vectors shares with searches.
struct Shared {
    embedder: Embedder,
    cache: VectorCache,
    /// Held by the task that makes vectors.
    making: Arc<tokio::sync::Mutex<()>>,
    /// Why the last one ended early.
    failure: Mutex<Option<SimilarityError>>,
    /// Changes with each batch and with its end.
    progress: watch::Sender<u64>,
}

impl ToolVectors {
    /// By the operator's model; vectors are stored in `key_values`.
    #[must_use]
    pub fn new(embedder: Embedder, key_values: Arc<dyn KeyValues>) -> Self {
        let timeout = embedder.keys().timeout;
        let shared = Shared {
            cache: VectorCache::new(key_values, &embedder),
            embedder,
            making: Arc::default(),
            failure: Mutex::default(),
            progress: watch::Sender::new(0),
        };
        Self { timeout, shared: Arc::new(shared) }
    }

    async fn compare_whenever(&self, query: &str, tools: &[String]) -> Result<Vec<f32>, SimilarityError> {
        let vector = async { self.shared.embedder.query(query).await.map_err(failed) };
        let (query, tools) = tokio::try_join!(vector, self.shared.vectors(tools))?;
        let Some(query) = query else { return Err(SimilarityError("no vector came".to_owned())) };
        tools
            .iter()
            .map(|tool| {
                query.cosine(tool).ok_or_else(|| SimilarityError("vectors of two lengths came".to_owned()))
            })
            .collect()
    }
}

#[async_trait]
impl ToolSimilarity for ToolVectors {
    async fn compare(&self, query: &str, tools: &[String]) -> Result<Vec<f32>, SimilarityError> {
        let within = self.timeout;
        match timeout(within.get(), self.compare_whenever(query, tools)).await {
            Ok(compared) => compared,
            Err(_) => Err(SimilarityError(format!(
                "{} made no vectors within {within} (models.embeddings.timeout); those of tools are made in the background, once",
                self.model()
            ))),
        }
    }

    fn model(&self) -> String {
        self.shared.embedder.model()
    }

    fn is_local(&self) -> bool {
        self.shared.embedder.is_local()
    }
}

impl Shared {
    /// The vectors of the tools' texts, once there are all of them.
    async fn vectors(self: &Arc<Self>, tools: &[String]) -> Result<Vec<Vector>, SimilarityError> {
        let mut progress = self.progress.subscribe();
        loop {
            let missing = match self.cache.get(tools).await? {
                Ok(vectors) => return Ok(vectors),
                Err(missing) => missing,
            };
            if let Ok(held) = Arc::clone(&self.making).try_lock_owned() {
                *self.failure.lock() = None;
                let (shared, wanted) = (Arc::clone(self), tools.to_vec());
                tokio::spawn(async move {
                    let made = shared.make(missing, &wanted).await;
                    *shared.failure.lock() = made.err();
                    drop(held);
                    shared.progress.send_modify(|count| *count += 1);
                });
            }
            // The sender lives as long as this.
            let _changed = progress.changed().await;
            if let Some(failure) = self.failure.lock().clone() {
                return Err(failure);
            }
        }
    }

    /// Makes and stores vectors, a batch at a time.
    async fn make(&self, missing: Vec<String>, wanted: &[String]) -> Result<(), SimilarityError> {
        self.cache.make_room(missing.len(), wanted).await;
        for texts in missing.chunks(MAX_EMBEDDED_TEXTS) {
            let vectors = self.embedder.documents(texts, BATCH_TIMEOUT.get()).await.map_err(failed)?;
            self.cache.put(texts, vectors).await;
            self.progress.send_modify(|count| *count += 1);
        }
        Ok(())
    }
}

fn failed(error: ProviderError) -> SimilarityError {
    SimilarityError(error.to_string())
}

#[cfg(test)]
mod tests;
