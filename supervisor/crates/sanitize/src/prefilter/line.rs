//! Prefilters for lines that may begin with a turn, and for words in front of a colon that may name a
//! speaker.

use super::bytes::is_ambiguous;
use super::prefixes::PrefixTable;
use crate::swar::EightBytes;

/// Whether the name of a speaker may end in this byte: its last letter, a byte of an escape, or an invisible
/// character behind it.
static ENDS_SPEAKER: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'g' | b'h' | b'j'..=b'l' | b'o'..=b'q' | b's' | b'u'..=b'z' => false,
            b'G' | b'H' | b'J'..=b'L' | b'O'..=b'Q' | b'S' | b'U'..=b'Z' => false,
            byte if byte.is_ascii_punctuation() => matches!(byte, b';' | b'}' | b'\\'),
            _ => true,
        };
        byte += 1;
    }
    table
};

/// The names of speakers and steps, reversed, as [`crate::shapes::speaker`] reads them.
pub(crate) const SPEAKERS_REVERSED: [&str; 12] = [
    "resu",
    "namuh",
    "tnatsissa",
    "metsys",
    "tobtahc",
    "tob",
    "tpg",
    "noclaf",
    "noitasrevnoc",
    "tupninoitca",
    "tupniloot",
    "tupninoitcnuf",
];

/// As long as `\u001b[0m`, and some white space.
const MAX_ESCAPE: usize = 12;

/// Whether the text ends in the name of a speaker, as far as ASCII letters tell.
pub(super) fn may_be_speaker(text: &[u8]) -> bool {
    if !text.last().is_some_and(|&byte| ENDS_SPEAKER[usize::from(byte)]) {
        return false;
    }
    match *text {
        // The usual case: most words in front of a colon.
        [.., third, second, first] if !SPEAKERS.may_begin_with(first, second, third) => {
            may_end_in_escape(text, 3 + MAX_ESCAPE)
        }
        _ => may_be_speaker_by_letters(text),
    }
}

/// The same letter by letter.
fn may_be_speaker_by_letters(text: &[u8]) -> bool {
    let mut possible = [true; SPEAKERS_REVERSED.len()];
    let letters = text.iter().rev().filter(|byte| !byte.is_ascii_whitespace() && !byte.is_ascii_control());
    for (index, byte) in letters.enumerate() {
        if is_ambiguous(*byte) || *byte == b';' {
            return true;
        }
        let mut any = false;
        for (possible, name) in possible.iter_mut().zip(SPEAKERS_REVERSED) {
            *possible = *possible && name.as_bytes().get(index) == Some(&(byte | 0x20));
            if *possible && name.len() == index + 1 {
                return true;
            }
            any |= *possible;
        }
        if !any {
            return may_end_in_escape(text, index + MAX_ESCAPE);
        }
    }
    false
}

/// Whether the last letters may be those of an escape or stand behind a comment: `US\nER:`, `US<!-- -->ER:`.
fn may_end_in_escape(text: &[u8], length: usize) -> bool {
    let nearest = &text[text.len().saturating_sub(length)..];
    nearest.iter().any(|byte| matches!(byte, b'\\' | b'%' | b';'))
        || nearest.windows(2).any(|pair| pair == b"->")
}

/// For reading backwards, like [`SPEAKERS_REVERSED`]. An invisible character matches anything.
static SPEAKERS: PrefixTable = PrefixTable::of(&[&SPEAKERS_REVERSED]);

/// Whether the line that begins at `at` may begin with a turn.
#[inline]
pub(crate) fn may_begin_turn(bytes: &[u8], at: usize) -> bool {
    let mut at = at;
    loop {
        let indent = EightBytes::at(bytes, at).indent();
        at += indent;
        if indent < 8 {
            break;
        }
    }
    if at >= bytes.len() {
        return false;
    }
    let word = EightBytes::at(bytes, at);
    // A backspace deletes the second letter.
    if word.byte(2) == 8 {
        return true;
    }
    match word.byte(0) {
        b'>' => {
            word.byte(1) == b'>' && (word.byte(2) == b'>' || is_ambiguous(word.byte(2)))
                || is_ambiguous(word.byte(1))
        }
        // A blank line.
        b'\n' | b'\r' => false,
        // A comment between the first letters.
        _ if word.byte(1) == b'<' && word.byte(2) == b'!' || word.byte(2) == b'<' && word.byte(3) == b'!' => {
            true
        }
        _ => TURNS.may_begin(word) && TURNS.may_begin_split(bytes, at),
    }
}

/// The words of [`crate::shapes::line_start`].
pub(crate) const TURN_LISTS: [&[&str]; 1] = [&[
    "human",
    "assistant",
    "system",
    "user",
    "action",
    "observation",
    "thought",
    "final",
    "ai",
    "bot",
    "chatbot",
    "gpt",
    "falcon",
    "tool",
    "function",
    "beginning",
]];

static TURNS: PrefixTable = PrefixTable::of(&TURN_LISTS);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn three_letters_exclude_no_speaker(
            text in "[a-z ;%]{0,4}(user|HUMAN|bot|assistant|gpt|falcon|ü|字|[a-z]{0,3})([ \t\n\x08_;-]|\\\\|&#10;|\u{200b}|Е|[a-z]){0,4}",
        ) {
            let ends_so = text.bytes().last().is_some_and(|byte| ENDS_SPEAKER[usize::from(byte)]);
            let by_letters = ends_so && may_be_speaker_by_letters(text.as_bytes());
            prop_assert!(may_be_speaker(text.as_bytes()) || !by_letters);
        }
    }

    #[test]
    fn every_speaker_may_be_one_whole_and_torn() {
        for name in SPEAKERS_REVERSED {
            let name: String = name.chars().rev().collect();
            let torn = name.chars().map(String::from).collect::<Vec<_>>().join(" ");
            for name in [name.to_uppercase(), format!("a {name} "), name, torn] {
                assert!(may_be_speaker(name.as_bytes()), "{name}");
            }
        }
        assert!(!may_be_speaker(b"Bring a coat"));
    }
}
