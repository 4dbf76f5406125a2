//! Lines that may begin with a turn, and words in front of a colon that may name a speaker.

use super::beginnings::Beginnings;
use super::is_foreign;
use crate::swar::Eight;

/// Whether the name of a speaker may end in this byte: in the last letter of one, in what spells it, or in what is not
/// seen behind it.
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

/// The names of speakers, backwards, as [`crate::shapes::speaker`] reads them.
pub(crate) const SPEAKERS_REVERSED: [&str; 9] =
    ["resu", "namuh", "tnatsissa", "metsys", "tobtahc", "tob", "tpg", "noclaf", "noitasrevnoc"];

/// Whether the text ends in the name of a speaker, as far as ASCII letters tell.
pub(super) fn may_be_speaker(text: &[u8]) -> bool {
    /// As long as `\u001b[0m`, and some white space.
    const MAX_ESCAPE: usize = 12;
    if !text.last().is_some_and(|&byte| ENDS_SPEAKER[usize::from(byte)]) {
        return false;
    }
    let mut possible = [true; SPEAKERS_REVERSED.len()];
    let letters = text.iter().rev().filter(|byte| !byte.is_ascii_whitespace() && !byte.is_ascii_control());
    for (index, byte) in letters.enumerate() {
        if is_foreign(*byte) || *byte == b';' {
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
            // The letters of an escape, perhaps: `US\nER:`.
            let mut nearest = text.iter().rev().take(index + MAX_ESCAPE);
            return nearest.any(|byte| matches!(byte, b'\\' | b'%' | b';'));
        }
    }
    false
}

/// Whether the line that begins at `at` may begin with a turn.
#[inline]
pub(crate) fn may_begin_turn(bytes: &[u8], at: usize) -> bool {
    let mut at = at;
    loop {
        let indent = Eight::at(bytes, at).indent();
        at += indent;
        if indent < 8 {
            break;
        }
    }
    if at >= bytes.len() {
        return false;
    }
    let word = Eight::at(bytes, at);
    // A backspace takes the second letter away.
    if word.byte(2) == 8 {
        return true;
    }
    match word.byte(0) {
        b'>' => {
            word.byte(1) == b'>' && (word.byte(2) == b'>' || is_foreign(word.byte(2)))
                || is_foreign(word.byte(1))
        }
        // A blank line.
        b'\n' | b'\r' => false,
        _ => TURNS.may_begin(word) && TURNS.may_be_torn(bytes, at),
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

static TURNS: Beginnings = Beginnings::of(&TURN_LISTS);
