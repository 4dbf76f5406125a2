//! What is shown of a session.

use std::ops::Range;

use talon_llm::model::Message;

/// The part of a session that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryView {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Ranges of the history that are left out and not summarized yet, oldest first.
    pub left_out: Vec<Range<usize>>,
    /// How many turns are shown.
    pub turns: usize,
    /// How many results were cut.
    pub cut: usize,
    /// Tokens of results that were left out.
    pub cut_tokens: usize,
    /// Tokens of the latest results.
    pub result_tokens: usize,
    /// Tokens of everything else.
    pub recent_tokens: usize,
}
