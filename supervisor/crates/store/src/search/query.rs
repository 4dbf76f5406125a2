//! Parses search queries.

use super::fold::fold;
use super::tokenizer::{ScriptRun, push, script_runs, tokenize};
use crate::error::Error;
use crate::limits::{MAX_QUERY_BYTES, MAX_QUERY_WORDS, size};

/// A query: all its terms must match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// At least one.
    pub(crate) terms: Vec<Term>,
}

/// Consecutive words; the last one is a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// At least one.
    pub(crate) words: Vec<String>,
}

impl Query {
    /// Parses the text of a person or a model.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        size("a search text", text.len(), MAX_QUERY_BYTES)?;
        let folded = fold(text);
        let mut left = MAX_QUERY_WORDS;
        let mut terms = Vec::new();
        for part in folded.split_whitespace() {
            let mut words = Vec::new();
            let runs = script_runs(part);
            for (at, run) in runs.iter().enumerate() {
                // In the index, the last character of a run stands alone. At the end of a query it may be in
                // the middle of a run, so it is not required.
                push(&mut words, run, at + 1 < runs.len());
            }
            words.truncate(left);
            left -= words.len();
            if !words.is_empty() {
                terms.push(Term { words });
            }
        }
        if terms.is_empty() {
            return Err(Error::invalid("a search text", "must hold a letter or a digit"));
        }
        Ok(Self { terms })
    }
}

/// How many letters at the front of a word are the same in its other forms: post, posts, posted.
const STEM_CHARS: usize = 4;

/// The prefixes of a request's words; any of them makes a workflow a candidate. This is not a stemmer: it is
/// independent of the language, and surplus candidates are compared closely later.
pub(crate) fn stems(request: &str) -> Vec<String> {
    let mut stems: Vec<String> = tokenize(request)
        .into_iter()
        // Short words are articles and prepositions; but pairs of characters are whole words.
        .filter(|word| word.chars().count() > 2 || !word.is_ascii())
        .map(|word| word.chars().take(STEM_CHARS).collect())
        .collect();
    stems.sort_unstable();
    stems.dedup();
    stems.truncate(MAX_QUERY_WORDS);
    stems
}

impl ScriptRun<'_> {
    /// Whether it contains words of a script without spaces.
    #[cfg(test)]
    pub(super) fn is_dense(&self) -> bool {
        matches!(self, Self::Dense(_))
    }
}
