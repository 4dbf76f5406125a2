//! Why a request or a name is invalid.

/// A part of a request is invalid, whatever is in the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {why}")]
pub struct InvalidError {
    /// The invalid part of the request, as the beginning of a sentence.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl InvalidError {
    /// A reason: what is invalid, and what it must be.
    #[must_use]
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self { what, why: why.into() }
    }
}
