//! The interface of a provider.

use async_trait::async_trait;

use crate::model::{Answer, Chunk, EmbeddingRequest, ErrorClass, ProviderError, Request};

/// Receives the pieces of an answer as they arrive. Must not block.
pub trait ChunkListener: Send {
    /// Receives a piece.
    fn on_chunk(&mut self, chunk: Chunk);
}

impl<F: FnMut(Chunk) + Send> ChunkListener for F {
    fn on_chunk(&mut self, chunk: Chunk) {
        self(chunk);
    }
}

/// A provider of models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Asks a model. Dropping the future closes the connection, so that the provider stops, too.
    ///
    /// # Errors
    /// [`ProviderError`]; the pieces received before it are part of no answer.
    async fn ask(&self, request: &Request, listener: &mut dyn ChunkListener)
    -> Result<Answer, ProviderError>;

    /// Vectors of texts, in their order; all have the same length, and none is zero.
    ///
    /// # Errors
    /// [`ProviderError`], of the class `Request` where the protocol has no vectors.
    async fn embed(&self, _request: &EmbeddingRequest) -> Result<Vec<Vec<f32>>, ProviderError> {
        Err(ProviderError {
            provider: self.name().to_owned(),
            class: ErrorClass::Request,
            status: None,
            message: "it makes no vectors of texts: name a provider of the kind openai or ollama in models.embeddings"
                .to_owned(),
            retry_after: None,
        })
    }

    /// Whether it searches tools itself ([`crate::model::DeferredTools`]), at least for some of its models.
    fn searches_tools(&self) -> bool {
        false
    }

    /// Checks that the provider is reachable and accepts the key, as cheaply as possible; no model is asked.
    ///
    /// # Errors
    /// [`ProviderError`]
    async fn probe(&self) -> Result<(), ProviderError>;

    /// Why the provider cannot be used until its configuration changes, if an earlier response showed that;
    /// with what to do. It is then skipped like one that is not set up.
    fn permanent_refusal(&self) -> Option<String> {
        None
    }
}
