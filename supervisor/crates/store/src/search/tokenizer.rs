//! Splits a text into the words of the index.

use super::fold::fold;
use crate::limits::{MAX_INDEXED_BYTES, MAX_INDEXED_WORDS, MAX_WORD_CHARS};

/// A run of characters of a folded text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptRun<'a> {
    /// A word, delimited by spaces and punctuation.
    Word(&'a str),
    /// Text without spaces between its words.
    Dense(Vec<&'a str>),
}

/// The words of a text in order, as they are indexed.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    // The rest is not indexed anyway, and folding is the most expensive part.
    let folded = fold(&text[..text.floor_char_boundary(MAX_INDEXED_BYTES)]);
    let mut words = Vec::new();
    for run in script_runs(&folded) {
        if words.len() >= MAX_INDEXED_WORDS {
            break;
        }
        push(&mut words, &run, true);
    }
    let mut left = MAX_INDEXED_BYTES;
    let fits = |word: &String| left.checked_sub(word.len()).inspect(|&less| left = less).is_some();
    words.into_iter().take(MAX_INDEXED_WORDS).take_while(fits).collect()
}

/// Adds a run's words. `whole`: also adds its last character alone, as in the index.
pub(super) fn push(words: &mut Vec<String>, run: &ScriptRun<'_>, whole: bool) {
    match run {
        ScriptRun::Word(word) => words.push(word.chars().take(MAX_WORD_CHARS).collect()),
        ScriptRun::Dense(characters) => {
            words.extend(characters.windows(2).map(<[&str]>::concat));
            if whole || characters.len() == 1 {
                words.extend(characters.last().map(|&last| last.to_owned()));
            }
        }
    }
}

/// The runs of a folded text.
pub(super) fn script_runs(folded: &str) -> Vec<ScriptRun<'_>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Gap,
        Letter,
        Dense,
    }
    let kind = |character: char| match character {
        _ if is_dense(character) => Kind::Dense,
        _ if is_letter(character) => Kind::Letter,
        _ => Kind::Gap,
    };
    let mut runs = Vec::new();
    let mut characters = folded.char_indices().peekable();
    while let Some((start, first)) = characters.next() {
        let of = kind(first);
        let mut end = start + first.len_utf8();
        let mut parts = vec![&folded[start..end]];
        while let Some(&(at, next)) = characters.peek()
            && kind(next) == of
        {
            end = at + next.len_utf8();
            if of == Kind::Dense {
                parts.push(&folded[at..end]);
            }
            characters.next();
        }
        match of {
            Kind::Gap => {}
            Kind::Letter => runs.push(ScriptRun::Word(&folded[start..end])),
            Kind::Dense => runs.push(ScriptRun::Dense(parts)),
        }
    }
    runs
}

/// Marks that survive folding belong to the letter before them, as in Devanagari. The private areas and emoji
/// are gaps.
fn is_letter(character: char) -> bool {
    character.is_alphanumeric() || unicode_normalization::char::is_combining_mark(character)
}

/// Whether a script has no spaces between words.
fn is_dense(character: char) -> bool {
    matches!(u32::from(character),
        0x0e01..=0x0e3a | 0x0e40..=0x0e4e // Thai
        | 0x0e81..=0x0ece // Lao
        | 0x1000..=0x103f // Burmese
        | 0x1780..=0x17d3 // Khmer
        | 0x3005..=0x3007 | 0x3041..=0x3096 | 0x3099..=0x309a | 0x309d..=0x309f // Hiragana
        | 0x30a1..=0x30fa | 0x30fc..=0x30ff | 0x31f0..=0x31ff // Katakana
        | 0x3105..=0x312f | 0x31a0..=0x31bf // Bopomofo
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff // Han
        | 0xac00..=0xd7a3 // Hangul, whose spaces part phrases rather than words
    )
}
