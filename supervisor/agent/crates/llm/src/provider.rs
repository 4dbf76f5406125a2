//! What every provider can do.

use async_trait::async_trait;

use crate::model::{Answer, Chunk, ProviderError, Request};

/// Hears the pieces of an answer as they come. Must not block.
pub trait Hear: Send {
    /// One more piece.
    fn hear(&mut self, chunk: Chunk);
}

impl<F: FnMut(Chunk) + Send> Hear for F {
    fn hear(&mut self, chunk: Chunk) {
        self(chunk);
    }
}

/// One way to reach models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Asks a model. Dropping the future closes the connection, so that the provider stops, too.
    ///
    /// # Errors
    /// [`ProviderError`]; pieces that were heard before it are part of no answer.
    async fn ask(&self, request: &Request, heard: &mut dyn Hear) -> Result<Answer, ProviderError>;

    /// Whether it can be reached and takes the key, as cheaply as the provider allows; no model is asked.
    ///
    /// # Errors
    /// [`ProviderError`]
    async fn probe(&self) -> Result<(), ProviderError>;

    /// Why it cannot be asked before somebody changes its configuration, if what it said showed that: with what to do. It is then passed
    /// over as one that is not set up.
    fn refused(&self) -> Option<String> {
        None
    }
}
