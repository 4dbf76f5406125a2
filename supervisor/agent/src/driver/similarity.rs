//! How similar tools are to a query in meaning, as a turn sees it.

use async_trait::async_trait;
use talon_llm::route::router::Pins;

/// Compares texts by an embedding model.
#[async_trait]
pub trait ToolSimilarity: Send + Sync {
    /// How similar each of the tools' texts is to a query: the cosine of their vectors, in the texts' order.
    ///
    /// # Errors
    /// Why there is no answer in time.
    async fn compare(&self, query: &str, tools: &[String]) -> Result<Vec<f32>, SimilarityError>;

    /// The model that sees the query, as provider/name.
    fn model(&self) -> String;

    /// Whether it is on this machine.
    fn is_local(&self) -> bool;
}

/// Why tools are found by words alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SimilarityError(
    /// A sentence's part that says what happened.
    pub String,
);

/// Whether an embedding model may see what a turn says. One on this machine may; of others, only what is not bound
/// to this machine or to one model.
///
/// # Errors
/// Why it may not.
pub(crate) fn check_pins(model: &str, is_local: bool, pins: &Pins) -> Result<(), SimilarityError> {
    if is_local {
        return Ok(());
    }
    let confined = if pins.local_only {
        "this turn stays on this machine (local_only)"
    } else if is_pinned(pins) {
        "this turn's model is pinned"
    } else {
        return Ok(());
    };
    Err(SimilarityError(format!("{model} is not on this machine, and {confined}")))
}

/// Whether what a turn says may go to no embedding model that is elsewhere.
pub(crate) fn is_confined(pins: &Pins) -> bool {
    pins.local_only || is_pinned(pins)
}

fn is_pinned(pins: &Pins) -> bool {
    pins.request.is_some() || pins.session.is_some()
}
