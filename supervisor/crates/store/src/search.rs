//! Tokenization, the same for both engines: which words are indexed, and which a query searches for.
//!
//! The engines' own tokenizers disagree with each other, and neither finds a Chinese word of two characters.
//! So texts are folded and split into words here, and the engines index these words unchanged: FTS5 with its
//! `ascii` tokenizer, which treats every other character as a letter, and PostgreSQL as a literal `tsvector`.
//!
//! Text without spaces between words is split into overlapping pairs of characters, and the last character of
//! a run stands alone: 東京都 is indexed as 東京, 京都, 都. Any part of a run is then a sequence of pairs, and a
//! single character is a prefix of one.

mod fold;
mod query;
mod similarity;
mod tokenizer;

use crate::error::Error;
pub(crate) use fold::fold;
pub(crate) use query::{Query, stems};
pub(crate) use similarity::Features;
pub(crate) use tokenizer::tokenize;

/// Shorter texts are tokenized on the current thread, which takes less than a millisecond.
const INLINE_BYTES: usize = 16 * 1024;

/// Tokenizes texts with `render`, on another thread if that takes long, so that neither the runtime nor the
/// writer thread waits for it.
pub(crate) async fn render_all(texts: Vec<String>, render: fn(&str) -> String) -> Result<Vec<String>, Error> {
    let length: usize = texts.iter().map(String::len).sum();
    let all = move || texts.iter().map(|text| render(text)).collect();
    if length < INLINE_BYTES {
        return Ok(all());
    }
    tokio::task::spawn_blocking(all).await.map_err(|panic| Error::Engine(panic.into()))
}

#[cfg(test)]
mod tests;
