//! The similarity of two texts, independent of their language.

use std::collections::BTreeSet;

use super::tokenizer::tokenize;

/// The trigrams of a text's words, with two spaces before and one after each word, as in `pg_trgm`: so
/// prefixes count more, and *analyse* resembles *analyze*.
#[derive(Debug)]
pub(crate) struct Features(BTreeSet<[char; 3]>);

impl Features {
    pub(crate) fn of(text: &str) -> Self {
        let mut features = BTreeSet::new();
        for word in tokenize(text) {
            let padded: Vec<char> = "  ".chars().chain(word.chars()).chain([' ']).collect();
            features.extend(padded.windows(3).map(|three| [three[0], three[1], three[2]]));
        }
        Self(features)
    }

    /// The share of common trigrams (Dice's coefficient): 0 to 1.
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        let shared = self.0.intersection(&other.0).count();
        let all = self.0.len() + other.0.len();
        #[expect(clippy::cast_precision_loss, reason = "texts have fewer than 2^52 characters")]
        let similarity = if all == 0 { 0.0 } else { 2.0 * shared as f64 / all as f64 };
        similarity
    }
}
