//! What the first stage asks of three bytes in a row. A rule holds of every place it is meant for, and of a few others; see
//! [`Halves`].

use crate::quick::{KEY_LISTS, NAME_LISTS, REFERENCE_LISTS, SPEAKERS_REVERSED, TURN_LISTS};
use crate::sets::{Halves, Set};

/// What the folded view writes for a byte that may fold to something else or spell it: beyond ASCII, or `&`, `%`, `\`.
pub(super) const FOREIGN: u8 = 0x80;

/// What it writes for white space and other controls, `_` and `-`: they may stand between two letters of one word. The end
/// of the text is one.
pub(super) const LOOSE: u8 = 0x90;

/// What a byte is by itself. Of each the halves do not mix, so all of these are exact.
pub(super) static CLASSES: Halves = Halves::of(&[
    Set::of(b" "),
    Set::of(b"\t\x0c"),
    Set::of(&CONTROLS),
    Set::of(b"-"),
    Set::of(b"_\x7f"),
    Set::of(b"%&"),
    Set::of(b"\\"),
    Set::BEYOND,
]);
/// The classes in which a byte is indentation, and so on.
pub(super) const INDENT: u8 = 0b0000_0011;
pub(super) const CONTROL: u8 = 0b0000_0100;
pub(super) const IS_LOOSE: u8 = 0b0001_1111;
pub(super) const ESCAPE: u8 = 0b0110_0000;
pub(super) const IS_FOREIGN: u8 = 0b1110_0000;

/// What tells that something may begin nearby, characters beyond ASCII aside: openers, escapes, colons, breaks and other controls.
/// Most of prose has none of them in 64 bytes. Of each set the halves do not mix, so all of these are exact.
pub(super) static TELLING: Halves = Halves::of(&[
    Set::of(b"\0\x01\x02\x03\x04\x05\x06\x07\x08\n\x0b\r\x0e\x0f"),
    Set::of(b"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"),
    Set::of(b"\"#%&"),
    Set::of(b":<"),
    Set::of(b"\\|"),
    Set::of(b"`"),
    Set::of(b"["),
    Set::of(b"~\x7f"),
]);
/// Those that are places by themselves, whatever comes behind them.
pub(super) const SINGLE: u8 = 0b1100_0000;

/// Eight rules on three bytes in a row.
pub(super) struct Table {
    /// For each of the three the rules that its low half, and those that its high half, may take part in.
    pub(super) halves: [Halves; 3],
}

/// Rules on a byte as it is and the two folded ones behind it: the places of openers and escapes.
pub(super) static OPENERS: Table = Table::of([
    // JSON is full of quotes: those in front of what the keys that matter begin with. Two rules, so that the halves of the
    // letters do not mix.
    begins_key(b"abcdefghijklmno"),
    begins_key(b"pqrstuvwxyz"),
    [Set::of(b"\""), OPEN, Set::ALL],
    [Set::of(b"&"), REFERENCES.letters(0), REFERENCES.letters(1).or(FOREIGNERS)],
    [Set::of(b"&#"), Set::of(b"#").or(FOREIGNERS), Set::ALL],
    // The first digit of what matters, and the `u` of `%u003c`.
    [Set::of(b"%"), Set::of(b"0235678au").or(FOREIGNERS), Set::ALL],
    // And `|>`, which has a half in common.
    [Set::of(b"\\|"), Set::of(b"nrux:>").or(FOREIGNERS), Set::ALL],
    [Set::of(b"`"), Set::of(b"`").or(FOREIGNERS), Set::ALL],
]);

/// The rules of [`FOLDED`] on a line's first characters that are no indentation.
pub(super) const TURNS: u8 = 0b0011_1111;
/// The one on a place itself.
pub(super) const PLACES: u8 = 0b0100_0000;
/// The one that holds one byte in front of the place: of the last two letters of a speaker and the colon.
pub(super) const SPEAKER: u8 = 0b1000_0000;

/// Rules on three folded bytes.
pub(super) static FOLDED: Table = Table::of([
    // In three rules, for the same reason as above.
    begins_turn(b"abcdefghijklmno"),
    begins_turn(b"pqrsuvwxyz"),
    begins_turn(b"t"),
    [TURN_WORDS.letters(0), TURN_WORDS.of_lengths(2, 2).letters(1).or(OPEN), Set::ALL],
    [OPEN, Set::ALL, Set::ALL],
    [Set::of(b">"), Set::of(b">").or(FOREIGNERS), Set::ALL],
    // White space and what nobody sees, in front of a colon.
    [OPEN, Set::of(b":"), Set::ALL],
    [SPEAKERS.letters(1).or(OPEN).or(Set::of(b";")), SPEAKERS.letters(0), Set::of(b":")],
]);

/// Rules on the first three folded bytes of a tag's name, of which white space may tear every one.
pub(super) static NAMES: Table = Table::of([
    begins_name(b"abc"),
    begins_name(b"defgh"),
    begins_name(b"ijklmno"),
    begins_name(b"pqrs"),
    begins_name(b"tuvwxyz"),
    [NAME_WORDS.letters(0), LOOSENED, Set::ALL],
    // Names of one and of two letters, and what ends them.
    [NAME_WORDS.of_lengths(1, 1).letters(0), NAME_ENDS, Set::ALL],
    [NAME_WORDS.of_lengths(2, 2).letters(0), NAME_WORDS.of_lengths(2, 2).letters(1), NAME_ENDS],
]);

/// What a byte is to a name.
pub(super) static NAME_CLASSES: Halves = Halves::of(&[
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

const NAME_WORDS: Words = Words::of(&NAME_LISTS);
/// `]` is folded to `}`.
const NAME_ENDS: Set = Set::of(b">=/}").or(LOOSENED);
const KEYS: Words = Words::of(&KEY_LISTS);
const REFERENCES: Words = Words::of(&REFERENCE_LISTS);
const TURN_WORDS: Words = Words::of(&TURN_LISTS);
/// Backwards.
const SPEAKERS: Words = Words::of(&[&SPEAKERS_REVERSED]);

const LOOSENED: Set = Set::of(&[LOOSE]);
const FOREIGNERS: Set = Set::of(&[FOREIGN]);
/// Tabs and line breaks too: they are told apart by a look of their own.
const CONTROLS: [u8; 32] = {
    let mut controls = [0; 32];
    let mut byte = 0;
    while byte < controls.len() {
        controls[byte] = byte as u8;
        byte += 1;
    }
    controls
};

const OPEN: Set = Set::of(&[FOREIGN, LOOSE]);

/// A key that begins with one of these letters.
const fn begins_key(initials: &[u8]) -> [Set; 3] {
    let words = KEYS.beginning_with(initials);
    [Set::of(b"\""), words.letters(0), words.letters(1).or(OPEN)]
}

/// A name of three and more letters that begins with one of these.
const fn begins_name(initials: &[u8]) -> [Set; 3] {
    let words = NAME_WORDS.beginning_with(initials).of_lengths(3, usize::MAX);
    [words.letters(0), words.letters(1), words.letters(2).or(LOOSENED)]
}

/// A turn of three and more letters that begins with one of these.
const fn begins_turn(initials: &[u8]) -> [Set; 3] {
    let words = TURN_WORDS.beginning_with(initials).of_lengths(3, usize::MAX);
    [words.letters(0), words.letters(1), words.letters(2).or(OPEN)]
}

impl Table {
    const fn of(rules: [[Set; 3]; 8]) -> Self {
        let mut sets = [[Set::ALL; 8]; 3];
        let mut rule = 0;
        while rule < rules.len() {
            (sets[0][rule], sets[1][rule], sets[2][rule]) = (rules[rule][0], rules[rule][1], rules[rule][2]);
            rule += 1;
        }
        Self { halves: [Halves::of(&sets[0]), Halves::of(&sets[1]), Halves::of(&sets[2])] }
    }
}

/// Words of some lists.
#[derive(Clone, Copy)]
struct Words {
    lists: &'static [&'static [&'static str]],
    /// The letters that they begin with.
    initials: Set,
    min: usize,
    max: usize,
}

impl Words {
    const fn of(lists: &'static [&'static [&'static str]]) -> Self {
        Self { lists, initials: Set::ALL, min: 0, max: usize::MAX }
    }

    const fn beginning_with(self, initials: &[u8]) -> Self {
        Self { initials: Set::of(initials), ..self }
    }

    const fn of_lengths(self, min: usize, max: usize) -> Self {
        Self { min, max, ..self }
    }

    /// The letters that they have at `index`, which each of them must have.
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
            let is = |halves: &Halves, classes: u8| halves.of_byte(byte) & classes != 0;
            assert_eq!(is(&CLASSES, INDENT), b" \t\x0c".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, CONTROL), byte < b' ', "{byte:#x}");
            assert_eq!(is(&CLASSES, IS_LOOSE), byte <= b' ' || b"-_\x7f".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, ESCAPE), b"%&\\".contains(&byte), "{byte:#x}");
            assert_eq!(is(&CLASSES, IS_FOREIGN), byte >= 0x80 || b"%&\\".contains(&byte), "{byte:#x}");
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
            let (tells, single) = (TELLING.of_byte(byte), b"[~\x7f".contains(&byte));
            let control = byte < b' ' && !b"\t\x0c".contains(&byte);
            assert_eq!(tells != 0, control || single || b"\"#%&:<\\`|".contains(&byte), "{byte:#x}");
            assert_eq!(tells & SINGLE != 0, single, "{byte:#x}");
            assert!(tells != 0 || OPENERS.halves[0].of_byte(byte) == 0, "{byte:#x}");
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
