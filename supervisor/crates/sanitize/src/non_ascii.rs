//! A bitmap of the non-ASCII characters at which a scan has to stop. Curly quotes, Chinese full stops and the
//! joiners of emoji share their first bytes with invisible characters and look-alikes, and are too frequent
//! to decode and compare each of them.

use std::sync::LazyLock;

use crate::fold::{is_symbol, punctuation};
use crate::invisible::is_invisible;

/// One bit for each character of the basic plane, computed from the rules on first use: 8 KiB.
static RELEVANT: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let mut bits = vec![0u64; 0x1_0000 / 64];
    for code in 0x80..0x1_0000u32 {
        if char::from_u32(code).is_some_and(is_relevant) {
            bits[code as usize / 64] |= 1 << (code % 64);
        }
    }
    bits.into_boxed_slice()
});

/// Whether a scan changes or inspects the character.
pub(crate) fn is_relevant(c: char) -> bool {
    is_invisible(c)
        || c.is_control()
        || matches!(
            punctuation(c),
            Some(b'\n' | b'<' | b'[' | b'"' | b'`' | b'#' | b'~' | b':' | b'&' | b'\\' | b'%')
        )
        || is_symbol(c)
}

/// Whether the character whose first byte is at `at` is relevant.
#[inline]
pub(crate) fn may_be_relevant(bytes: &[u8], at: usize) -> bool {
    let low = |index: usize| u32::from(bytes.get(at + index).copied().unwrap_or(0) & 0x3f);
    let code = match bytes[at] {
        first @ ..0xe0 => u32::from(first & 0x1f) << 6 | low(1),
        first @ ..0xf0 => u32::from(first & 0x0f) << 12 | low(1) << 6 | low(2),
        // Emoji are frequent and none of them is invisible.
        0xf0 => return bytes.get(at + 1) != Some(&0x9f),
        _ => return true,
    };
    RELEVANT.get(code as usize / 64).is_none_or(|bits| bits >> (code % 64) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::Candidates;
    use crate::fold::{Folded, fold};

    #[test]
    fn the_first_stages_stop_at_every_character_that_matters() {
        for c in ('\u{80}'..=char::MAX).filter(|&c| is_relevant(c)) {
            let text = String::from(c);
            assert_eq!(Candidates::new(text.as_bytes()).next(0), Some(0), "{c:?} is overlooked");
            assert!(may_be_relevant(text.as_bytes(), 0), "{c:?} is overlooked");
        }
    }

    /// The symbols of [`crate::prefilter`] rely on this.
    #[test]
    fn chinese_and_korean_fold_to_nothing_a_turn_is_written_in() {
        for c in ('\u{4000}'..='\u{9fff}').chain('\u{b000}'..='\u{cfff}') {
            assert!(
                !matches!(fold(c), Folded::Nothing | Folded::One(b'a'..=b'z' | b'>' | b' ' | b'\n')),
                "{c:?} folds to {:?}",
                fold(c)
            );
            assert!(!is_invisible(c));
        }
    }
}
