//! Counts the tokens of a text.
//!
//! | models | counted by | |
//! |---|---|---|
//! | OpenAI's `gpt-4o`, `gpt-4.1`, `gpt-5`, `o1` … `o4`, `gpt-oss` and later | `o200k_base` | exact |
//! | OpenAI's `gpt-4`, `gpt-3.5` | `cl100k_base` | exact |
//! | all others | [`Estimate`] | an estimate, and named as such wherever it is shown |
//!
//! The tokenizers are embedded; each is unpacked when it is first asked. Anthropic publishes none, and those
//! of open models are files of many megabytes each, one a family: the estimate does for choosing what to
//! send, and what was really used the provider says.

use std::fmt;
use std::sync::LazyLock;

use super::count_cache::CountCache;

/// Whether a count is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// By the model's own tokenizer. What providers add around messages is not included.
    Exact,
    /// By the scripts that a text is written in.
    Estimate,
}

/// Counts tokens.
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// The tokens of a text on its own. Time is linear in the text.
    fn count(&self, text: &str) -> usize;

    /// Whether the count is exact.
    fn accuracy(&self) -> Accuracy;
}

/// The counter for a model, by the name that its provider has for it; `openai/gpt-4o` is the same as
/// `gpt-4o`.
#[must_use]
pub fn counter_for(model: &str) -> &'static dyn TokenCounter {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    if begins(&["gpt-4o", "gpt-4.", "gpt-5", "chatgpt-4o", "gpt-oss", "o1", "o3", "o4"]) {
        &OpenAiTokenizer::O200k
    } else if begins(&["gpt-4", "gpt-3.5"]) {
        &OpenAiTokenizer::Cl100k
    } else {
        &Estimate
    }
}

/// OpenAI's tokenizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAiTokenizer {
    /// `o200k_base`
    O200k,
    /// `cl100k_base`
    Cl100k,
}

/// The tokenizer's expressions backtrack, and panic on white space of about a million characters, which a
/// tool can produce. In pieces the time is linear in the text and nothing panics; each boundary adds at most
/// one token in about eight thousand.
const MAX_PIECE_BYTES: usize = 32 * 1024;

impl TokenCounter for OpenAiTokenizer {
    fn count(&self, text: &str) -> usize {
        static COUNTS: LazyLock<[CountCache; 2]> = LazyLock::new(Default::default);
        let [of_o200k, of_cl100k] = &*COUNTS;
        let (tokenizer, counts) = match self {
            Self::O200k => (tiktoken_rs::o200k_base_singleton(), of_o200k),
            Self::Cl100k => (tiktoken_rs::cl100k_base_singleton(), of_cl100k),
        };
        counts.count(text, |text| pieces(text).map(|piece| tokenizer.count_ordinary(piece)).sum())
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }
}

/// Splits the text into pieces that end at line ends where possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let most = rest.floor_char_boundary(MAX_PIECE_BYTES);
        let line =
            if most < rest.len() { rest[..most].rfind('\n').filter(|at| *at >= most / 2) } else { None };
        let (piece, left) = rest.split_at(line.map_or(most, |at| at + 1));
        rest = left;
        Some(piece)
    })
}

/// By script, in characters a token:
///
/// | characters | a token has about |
/// |---|---|
/// | ASCII letters and spaces | 4 |
/// | ASCII digits, punctuation, line ends | 2 |
/// | other Latin, Greek, Cyrillic letters | 2½ |
/// | Arabic, Hebrew, Indic, Thai and other letters | 1⅔ |
/// | Han, kana, hangul | 1 |
/// | emoji and all else | ½ |
///
/// Four characters a token is the founding rule, for English. The rest was set by comparing with
/// `o200k_base`, so that the estimate is rather too high than too low: what is over a window is refused, what
/// is under it only leaves room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> usize {
        // In twentieths of a token.
        let sum: usize = text.chars().map(|c| usize::from(quick_twentieths(c))).sum();
        sum.div_ceil(20)
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Estimate
    }
}

/// [`twentieths`] of ASCII, of which most texts are.
const ASCII: [u8; 128] = {
    let mut all = [0; 128];
    let mut byte: u8 = 0;
    while byte < 128 {
        all[byte as usize] = twentieths(byte as char);
        byte += 1;
    }
    all
};

fn quick_twentieths(c: char) -> u8 {
    ASCII.get(c as usize).copied().unwrap_or_else(|| twentieths(c))
}

const fn twentieths(c: char) -> u8 {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 5,
        '\0'..='\u{7f}' => 10,
        '\u{80}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => 8,
        '\u{530}'..='\u{10ff}' | '\u{1200}'..='\u{1dff}' => 12,
        '\u{2000}'..='\u{206f}' => 20,
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' => 20,
        _ => 40,
    }
}

/// The longest tokens on average of any tokenizer, except for runs of white space: it bounds how far to look,
/// and is not a promise about the text.
const MAX_BYTES_PER_TOKEN: usize = 32;

/// The length in bytes of about the longest prefix with at most so many tokens; it ends between two
/// characters.
#[must_use]
pub fn fit(counter: &dyn TokenCounter, text: &str, tokens: usize) -> usize {
    let most = text.floor_char_boundary(tokens.saturating_mul(MAX_BYTES_PER_TOKEN));
    if counter.count(&text[..most]) <= tokens {
        return most;
    }
    let (mut fits, mut over) = (0, most);
    while fits < over {
        let middle = text.floor_char_boundary(fits + (over - fits) / 2);
        if middle == fits {
            break;
        }
        if counter.count(&text[..middle]) <= tokens { fits = middle } else { over = middle }
    }
    fits
}
