//! Encodes filters for the stage as text, with sixteen hexadecimal digits for each instruction. Lists of
//! numbers take several times as long to parse, and a filter has well over a thousand instructions.

use std::fmt::Write as _;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use crate::sys::seccomp::Instruction;

/// Digits of one instruction: four of its code, two of each jump, eight of its constant.
const DIGITS: usize = 16;

pub(super) fn serialize<S: Serializer>(filters: &[Vec<Instruction>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(filters.iter().map(|filter| text(filter)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<Instruction>>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read =
        |text: &String| read(text).ok_or_else(|| D::Error::custom("a filter is no list of instructions"));
    texts.iter().map(read).collect()
}

fn text(filter: &[Instruction]) -> String {
    let mut text = String::with_capacity(filter.len() * DIGITS);
    for &(code, jump_true, jump_false, constant) in filter {
        let instruction = u64::from(code) << 48
            | u64::from(jump_true) << 40
            | u64::from(jump_false) << 32
            | u64::from(constant);
        let _ = write!(text, "{instruction:016x}");
    }
    text
}

fn read(text: &str) -> Option<Vec<Instruction>> {
    let (instructions, rest) = text.as_bytes().as_chunks::<DIGITS>();
    let read = |digits: &[u8; DIGITS]| {
        let [c0, c1, jump_true, jump_false, constant @ ..] =
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?.to_be_bytes();
        Some((u16::from_be_bytes([c0, c1]), jump_true, jump_false, u32::from_be_bytes(constant)))
    };
    rest.is_empty().then(|| instructions.iter().map(read).collect())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(filter in prop::collection::vec(any::<Instruction>(), 0..50)) {
            prop_assert_eq!(read(&text(&filter)), Some(filter));
        }
    }

    #[test]
    fn nothing_else_is_read() {
        assert_eq!(read("0006000000000000"), Some(vec![(6, 0, 0, 0)]));
        for wrong in ["000600000000000", "00060000000000000", "000600000000000g", "+006000000000000 "] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
