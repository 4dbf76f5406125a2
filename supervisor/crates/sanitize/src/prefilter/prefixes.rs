//! The possible first three letters of a list of words, as tables that are built at compile time.

use crate::swar::EightBytes;

/// The possible first three letters of a list of words.
///
/// A letter, or the end of a word, is one symbol each. A symbol that folding could turn into any of them
/// matches everything, and so does white space, which may split a word.
pub(super) struct PrefixTable {
    /// Indexed by the first two symbols: a bit for each third symbol.
    third: [[u32; 32]; 32],
}

/// The end of a word.
const STOP: u8 = 26;

/// White space, what may fold to a letter, and the end of the text.
const ANY: u8 = 27;

/// Digits, which occur in no word.
const DIGIT: u8 = 28;

static SYMBOLS: [u8; 256] = {
    let mut table = [STOP; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            letter @ b'a'..=b'z' => letter - b'a',
            letter @ b'A'..=b'Z' => letter - b'A',
            b'0'..=b'9' => DIGIT,
            // Chinese and Korean: none of them folds to a letter.
            0xe4..=0xe9 | 0xeb..=0xec => STOP,
            // White space and other controls, what may fold to a letter, and an underscore, which is ignored.
            ..=b' ' | b'_' | b'-' | b'&' | b'\\' | b'%' | 0x7f.. => ANY,
            _ => STOP,
        };
        byte += 1;
    }
    table
};

impl PrefixTable {
    pub(super) const fn of(lists: &[&[&str]]) -> Self {
        let mut third = [[0; 32]; 32];
        // A word that begins with an ambiguous symbol may be any word.
        let mut symbol = 0;
        while symbol < 32 {
            third[ANY as usize][symbol] = u32::MAX;
            symbol += 1;
        }
        let mut list = 0;
        while list < lists.len() {
            let mut word = 0;
            while word < lists[list].len() {
                add(&mut third, lists[list][word].as_bytes());
                word += 1;
            }
            list += 1;
        }
        Self { third }
    }

    #[inline]
    pub(super) fn may_begin(&self, word: EightBytes) -> bool {
        self.may_begin_with(word.byte(0), word.byte(1), word.byte(2))
    }

    /// The same after skipping the white space between the letters, which is slower and more exact.
    #[cold]
    pub(super) fn may_begin_split(&self, bytes: &[u8], at: usize) -> bool {
        let mut letters = bytes[at.min(bytes.len())..].iter().filter(|byte| !byte.is_ascii_whitespace());
        let mut next = || letters.next().copied().unwrap_or(0);
        self.may_begin_with(next(), next(), next())
    }

    #[inline]
    pub(super) fn may_begin_with(&self, first: u8, second: u8, third: u8) -> bool {
        let symbol = |byte| usize::from(SYMBOLS[usize::from(byte)] & 31);
        self.third[symbol(first)][symbol(second)] >> symbol(third) & 1 != 0
    }
}

const fn add(third: &mut [[u32; 32]; 32], word: &[u8]) {
    let first = (word[0] - b'a') as usize;
    // An ambiguous symbol in the second place.
    third[first][ANY as usize] = u32::MAX;
    if word.len() == 1 {
        third[first][STOP as usize] = u32::MAX;
        return;
    }
    let second = (word[1] - b'a') as usize;
    let symbol = if word.len() > 2 { word[2] - b'a' } else { STOP };
    third[first][second] |= 1 << symbol | 1 << ANY;
}
