//! A request for vectors of texts.

use std::time::Duration;

/// Texts whose vectors are wanted of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingRequest {
    /// The model, by the provider's own name for it.
    pub model: String,
    /// The texts: at most [`crate::limits::MAX_EMBEDDED_TEXTS`], none empty.
    pub texts: Vec<String>,
    /// How many numbers a vector has, for models that can shorten them; `None` for the model's own.
    pub dimensions: Option<u32>,
    /// How long the answer may take, with every key that is tried; the provider's own timeouts hold as well.
    pub timeout: Duration,
}
