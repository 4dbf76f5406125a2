//! What a request requires of a model.

/// What a request requires of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Tool calls.
    pub tools: bool,
    /// Vision.
    pub vision: bool,
    /// The tokens of the question.
    pub input_tokens: u64,
    /// The estimated tokens of the answer.
    pub output_tokens: u64,
}
