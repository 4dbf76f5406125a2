//! Words, the same for both engines: what is indexed, and what a query asks for.
//!
//! The engines' own tokenizers disagree with each other, and neither finds a Chinese word of two characters. So texts are
//! folded and cut into words here, and the engines index the words as they are: FTS5 with its `ascii` tokenizer, which
//! takes every other character for a letter, and PostgreSQL as a `tsvector` written out.
//!
//! What is written without spaces between words is cut into overlapping pairs of characters, and the last character of
//! a run stands alone: 東京都 is indexed as 東京, 京都, 都. Any part of a run is then a sequence of pairs, and a single
//! character is the beginning of one.

mod fold;
mod query;
mod similar;
mod words;

use crate::error::Error;
pub(crate) use fold::fold;
pub(crate) use query::{Query, stems};
pub(crate) use similar::Features;
pub(crate) use words::words;

/// Texts shorter than this are cut into words where they are: it takes less than a millisecond.
const SHORT: usize = 16 * 1024;

/// Cuts texts into words as `render` has them, on another thread if that takes long: neither the runtime nor the thread
/// that writes is to wait for it.
pub(crate) async fn rendered(texts: Vec<String>, render: fn(&str) -> String) -> Result<Vec<String>, Error> {
    let length: usize = texts.iter().map(String::len).sum();
    let all = move || texts.iter().map(|text| render(text)).collect();
    if length < SHORT {
        return Ok(all());
    }
    tokio::task::spawn_blocking(all).await.map_err(|panic| Error::Engine(panic.into()))
}

#[cfg(test)]
mod tests;
