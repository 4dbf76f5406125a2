//! The rules of the first stage on three adjacent bytes. A rule matches every place it is meant for, and a
//! few others; see [`NibbleTables`].

use crate::prefilter::{KEY_LISTS, NAME_LISTS, REFERENCE_LISTS, SPEAKERS_REVERSED, TURN_LISTS};
use crate::sets::{NibbleTables, Set};

/// The folded view of a byte that may fold to something else or be part of an escape: beyond ASCII, or `&`,
/// `%`, `\`.
pub(super) const AMBIGUOUS: u8 = 0x80;

/// The folded view of white space and other controls, `_` and `-`: they may stand between two letters of one
/// word. The end of the text counts as one.
pub(super) const SEPARATOR: u8 = 0x90;

/// The classes of single bytes. The nibbles of each class do not mix, so all of these are exact.
pub(super) static CLASSES: NibbleTables = NibbleTables::of(&[
    Set::of(b" "),
    Set::of(b"\t\x0c"),
    Set::of(&CONTROLS),
    Set::of(b"-"),
    Set::of(b"_\x7f"),
    Set::of(b"%&"),
    Set::of(b"\\"),
    Set::NON_ASCII,
]);
/// The classes of indentation, and so on.
pub(super) const INDENT: u8 = 0b0000_0011;
pub(super) const CONTROL: u8 = 0b0000_0100;
pub(super) const IS_SEPARATOR: u8 = 0b0001_1111;
pub(super) const ESCAPE: u8 = 0b0110_0000;
pub(super) const IS_AMBIGUOUS: u8 = 0b1110_0000;

/// Bytes near which syntax may begin, characters beyond ASCII aside: openers, escapes, colons, breaks and
/// other controls. Most 64-byte blocks of prose have none. The nibbles of each set do not mix, so all of
/// these are exact.
pub(super) static INDICATORS: NibbleTables = NibbleTables::of(&[
    Set::of(b"\0\x01\x02\x03\x04\x05\x06\x07\x08\n\x0b\r\x0e\x0f"),
    Set::of(b"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"),
    Set::of(b"\"#%&"),
    Set::of(b":<"),
    Set::of(b"\\|"),
    Set::of(b"`"),
    Set::of(b"["),
    Set::of(b"~\x7f"),
]);
/// Bytes that are candidates whatever follows them.
pub(super) const STANDALONE: u8 = 0b1100_0000;

/// Eight rules on three adjacent bytes.
pub(super) struct Table {
    /// For each of the three bytes, the rules that its low and its high nibble may take part in.
    pub(super) nibbles: [NibbleTables; 3],
}

/// Rules on one unfolded byte and the two folded ones behind it: the places of openers and escapes.
pub(super) static OPENERS: Table = Table::of([
    // JSON is full of quotes: only those in front of the first letters of relevant keys. Two rules, so that
    // the nibbles of the letters do not mix.
    begins_key(b"abcdefghijklmno"),
    begins_key(b"pqrstuvwxyz"),
    [Set::of(b"\""), OPEN, Set::ALL],
    [Set::of(b"&"), REFERENCES.letters(0), REFERENCES.letters(1).or(AMBIGUOUS_SET)],
    [Set::of(b"&#"), Set::of(b"#").or(AMBIGUOUS_SET), Set::ALL],
    // The first digit of relevant escapes, and the `u` of `%u003c`.
    [Set::of(b"%"), Set::of(b"0235678au").or(AMBIGUOUS_SET), Set::ALL],
    // And `|>`, which shares a nibble.
    [Set::of(b"\\|"), Set::of(b"nrux:>").or(AMBIGUOUS_SET), Set::ALL],
    [Set::of(b"`"), Set::of(b"`").or(AMBIGUOUS_SET), Set::ALL],
]);

/// The rules of [`FOLDED`] on a line's first characters behind the indentation.
pub(super) const TURNS: u8 = 0b0011_1111;
/// The rule on the place itself.
pub(super) const PLACES: u8 = 0b0100_0000;
/// The rule on the byte before the place: the last two letters of a speaker and the colon.
pub(super) const SPEAKER: u8 = 0b1000_0000;

/// Rules on three folded bytes.
pub(super) static FOLDED: Table = Table::of([
    // In three rules, for the same reason as above.
    begins_turn(b"abcdefghijklmno"),
    begins_turn(b"pqrsuvwxyz"),
    begins_turn(b"t"),
    [TURN_WORDS.letters(0), TURN_WORDS.of_lengths(2, 2).letters(1).or(BROKEN), Set::ALL],
    [OPEN, Set::ALL, Set::ALL],
    [Set::of(b">"), Set::of(b">").or(AMBIGUOUS_SET), Set::ALL],
    // White space and invisible characters in front of a colon.
    [OPEN, Set::of(b":"), Set::ALL],
    [SPEAKERS.letters(1).or(OPEN).or(Set::of(b";")), SPEAKERS.letters(0), Set::of(b":")],
]);

/// Rules on the first three folded bytes of a tag's name. White space may stand between any of them.
pub(super) static NAMES: Table = Table::of([
    begins_name(b"abc"),
    begins_name(b"defgh"),
    begins_name(b"ijklmno"),
    begins_name(b"pqrs"),
    begins_name(b"tuvwxyz"),
    [NAME_WORDS.letters(0), SEPARATOR_SET, Set::ALL],
    // Names of one and of two letters, and what ends them.
    [NAME_WORDS.of_lengths(1, 1).letters(0), NAME_ENDS, Set::ALL],
    [NAME_WORDS.of_lengths(2, 2).letters(0), NAME_WORDS.of_lengths(2, 2).letters(1), NAME_ENDS],
]);

/// The classes of bytes in a name.
pub(super) static NAME_CLASSES: NibbleTables = NibbleTables::of(&[
    Set::of(b"0123456789"),
    Set::of(b"ABCDEFGHIJKLMNO"),
    Set::of(b"PQRSTUVWXYZ"),
    Set::of(b"abcdefghijklmno"),
    Set::of(b"pqrstuvwxyz"),
    Set::of(b"\t\n\x0b\x0c\r"),
    Set::of(b" "),
    Set::of(b"-"),
]);
pub(super) const ALPHANUMERIC: u8 = 0b0001_1111;
pub(super) const SPACE: u8 = 0b0110_0000;

const NAME_WORDS: WordLists = WordLists::of(&NAME_LISTS);
/// `]` is folded to `}`.
const NAME_ENDS: Set = Set::of(b">=/}").or(SEPARATOR_SET);
const KEYS: WordLists = WordLists::of(&KEY_LISTS);
const REFERENCES: WordLists = WordLists::of(&REFERENCE_LISTS);
const TURN_WORDS: WordLists = WordLists::of(&TURN_LISTS);
/// Reversed.
const SPEAKERS: WordLists = WordLists::of(&[&SPEAKERS_REVERSED]);

const SEPARATOR_SET: Set = Set::of(&[SEPARATOR]);
const AMBIGUOUS_SET: Set = Set::of(&[AMBIGUOUS]);
/// Tabs and line breaks too: separate rules distinguish them.
const CONTROLS: [u8; 32] = {
    let mut controls = [0; 32];
    let mut byte = 0;
    while byte < controls.len() {
        controls[byte] = byte as u8;
        byte += 1;
    }
    controls
};

const OPEN: Set = Set::of(&[AMBIGUOUS, SEPARATOR]);
/// With the beginning of a comment, `<!`.
const BROKEN: Set = OPEN.or(Set::of(b"<!"));

/// Keys that begin with one of these letters.
const fn begins_key(initials: &[u8]) -> [Set; 3] {
    let words = KEYS.beginning_with(initials);
    [Set::of(b"\""), words.letters(0), words.letters(1).or(OPEN)]
}

/// Names of three or more letters that begin with one of these.
const fn begins_name(initials: &[u8]) -> [Set; 3] {
    let words = NAME_WORDS.beginning_with(initials).of_lengths(3, usize::MAX);
    [words.letters(0), words.letters(1), words.letters(2).or(SEPARATOR_SET)]
}

/// Turns of three or more letters that begin with one of these.
const fn begins_turn(initials: &[u8]) -> [Set; 3] {
    let words = TURN_WORDS.beginning_with(initials).of_lengths(3, usize::MAX);
    [words.letters(0), words.letters(1).or(Set::of(b"<")), words.letters(2).or(BROKEN)]
}

impl Table {
    const fn of(rules: [[Set; 3]; 8]) -> Self {
        let mut sets = [[Set::ALL; 8]; 3];
        let mut rule = 0;
        while rule < rules.len() {
            (sets[0][rule], sets[1][rule], sets[2][rule]) = (rules[rule][0], rules[rule][1], rules[rule][2]);
            rule += 1;
        }
        Self { nibbles: [NibbleTables::of(&sets[0]), NibbleTables::of(&sets[1]), NibbleTables::of(&sets[2])] }
    }
}

/// The words of some lists.
#[derive(Clone, Copy)]
struct WordLists {
    lists: &'static [&'static [&'static str]],
    /// The letters that the words begin with.
    initials: Set,
    min: usize,
    max: usize,
}

impl WordLists {
    const fn of(lists: &'static [&'static [&'static str]]) -> Self {
        Self { lists, initials: Set::ALL, min: 0, max: usize::MAX }
    }

    const fn beginning_with(self, initials: &[u8]) -> Self {
        Self { initials: Set::of(initials), ..self }
    }

    const fn of_lengths(self, min: usize, max: usize) -> Self {
        Self { min, max, ..self }
    }

    /// The letters at `index` of the words, which must all be that long.
    const fn letters(self, index: usize) -> Set {
        let mut set = Set::of(&[]);
        let mut list = 0;
        while list < self.lists.len() {
            let mut word = 0;
            while word < self.lists[list].len() {
                let bytes = self.lists[list][word].as_bytes();
                if self.initials.has(bytes[0]) && self.min <= bytes.len() && bytes.len() <= self.max {
                    set = set.or(Set::of(&[bytes[index]]));
                }
                word += 1;
            }
            list += 1;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_byte_is_by_itself_is_exact() {
        for byte in 0..=u8::MAX {
            let is = |halves: &NibbleTables, classes: u8| halves.of_byte(byte) & classes != 0;
            assert_eq!(is(&CLASSES, INDENT), b" \t\x0c".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, CONTROL), byte < b' ', "{byte:#x}");
            assert_eq!(is(&CLASSES, IS_SEPARATOR), byte <= b' ' || b"-_\x7f".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, ESCAPE), b"%&\\".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, IS_AMBIGUOUS), byte >= 0x80 || b"%&\\".contains(&byte), "{byte:#x}");
            assert_eq!(is(&NAME_CLASSES, ALPHANUMERIC), byte.is_ascii_alphanumeric(), "{byte:#x}");
            assert_eq!(
                is(&NAME_CLASSES, SPACE),
                byte == b' ' || (b'\t'..=b'\r').contains(&byte),
                "{byte:#x}"
            );
        }
    }

    #[test]
    fn what_tells_is_exact_and_what_openers_begin_with() {
        for byte in 0..=u8::MAX {
            let (tells, single) = (INDICATORS.of_byte(byte), b"[~\x7f".contains(&byte));
            let control = byte < b' ' && !b"\t\x0c".contains(&byte);
            assert_eq!(tells != 0, control || single || b"\"#%&:<\\`|".contains(&byte), "{byte:#x}");
            assert_eq!(tells & STANDALONE != 0, single, "{byte:#x}");
            assert!(tells != 0 || OPENERS.nibbles[0].of_byte(byte) == 0, "{byte:#x}");
        }
    }

    #[test]
    fn every_word_is_let_through_in_every_case_and_torn() {
        use crate::candidates::Candidates;
        let begins = |text: &str| Candidates::new(text.as_bytes()).next(0) == Some(0);
        let spellings = |word: &str| {
            let torn: Vec<String> = word.chars().map(String::from).collect();
            [word.to_owned(), word.to_uppercase(), torn.join(" "), torn.join("_"), torn.join("\n")]
        };
        for word in NAME_LISTS.concat() {
            for word in spellings(word) {
                for tag in [
                    format!("<{word}>"),
                    format!("</{word}>"),
                    format!("<{word} a=1>"),
                    format!("<{word}"),
                    format!("< {word}="),
                ] {
                    assert!(begins(&tag), "{tag}");
                }
            }
        }
        for key in KEY_LISTS.concat() {
            for key in spellings(key) {
                assert!(begins(&format!("\"{key}\": [")) && begins(&format!("\" {key}")), "{key}");
            }
        }
        for turn in TURN_LISTS.concat() {
            for turn in spellings(turn) {
                assert!(begins(&format!("\n{turn}: ")) && begins(&format!("\n \t{turn}: ")), "{turn}");
            }
        }
    }
}
