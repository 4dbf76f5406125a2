//! Letters and digits alone, in lower case: what of a text is compared.
//!
//! They are written one behind the other into a buffer of fixed size, from which fingerprints are taken before it is filled
//! again, so a text of any length costs no memory. ASCII goes through the vector instructions at hand, without a branch for
//! each byte: whether one counts is as good as random.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

use super::grams::GRAM;
use super::letters;

/// How much is kept at a time: enough for most answers and for loops worth the name, little enough for the nearest cache.
const ROOM: usize = 4096;

/// With less room than this it is not filled up any further: what is left would be filled in ever smaller steps.
const FULL: usize = 128;

/// The widest vector there is: up to so many bytes are written without asking after each whether there is room, and what
/// is behind the last that counts is overwritten by the next.
const WIDEST: usize = 64;

/// What is written behind [`ROOM`]: a vector, or a character in lower case, which is up to three characters.
const SLACK: usize = WIDEST;

/// Behind so many characters of ASCII vectors go on: more than stand between two words of another script.
const GO_ON: usize = 4;

/// The part of a text that is being looked at.
pub(super) struct Kept {
    bytes: [u8; ROOM + SLACK],
    end: usize,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self { bytes: [0; ROOM + SLACK], end: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Takes in as much of a text as there is room for, and gives the rest of it.
    pub(super) fn fill<'t>(&mut self, text: &'t str) -> &'t str {
        self.fill_at(Level::new(), text)
    }

    /// The same with the instructions of this level.
    fn fill_at<'t>(&mut self, level: Level, text: &'t str) -> &'t str {
        let mut rest = text;
        while !rest.is_empty() && self.end + FULL <= ROOM {
            // None of it gets longer.
            let head = &rest.as_bytes()[..rest.len().min(ROOM - self.end)];
            let ascii = dispatch!(level, simd => self.push(simd, head));
            let taken = if ascii > 0 { ascii } else { self.push_beyond(rest) };
            rest = &rest[taken..];
        }
        rest
    }

    /// Drops what no piece begins in any more, where a piece begins at every `stride`th place.
    pub(super) fn forget_before(&mut self, stride: usize) {
        let pieces = self.end.saturating_sub(GRAM - 1).div_ceil(stride);
        // A stride is shorter than a piece, so the next one begins in what is there.
        let next = pieces * stride;
        self.bytes.copy_within(next..self.end, 0);
        self.end -= next;
    }

    /// Some bytes, for which there is room, up to the first beyond ASCII, of which it gives the place.
    #[inline(always)]
    fn push<S: Simd>(&mut self, simd: S, bytes: &[u8]) -> usize {
        let vectors = bytes.chunks_exact(S::u8s::LEN);
        let rest = vectors.remainder();
        for (index, vector) in vectors.enumerate() {
            let ascii = self.push_vector(simd, vector);
            if ascii < S::u8s::LEN {
                return index * S::u8s::LEN + ascii;
            }
        }
        // Zeros do not count.
        let mut last = [0; WIDEST];
        last[..rest.len()].copy_from_slice(rest);
        let ascii = self.push_vector(simd, &last[..S::u8s::LEN]);
        bytes.len() - rest.len() + ascii.min(rest.len())
    }

    /// The same for a vector. All that looks like a letter or digit is written, and only what counts moves the end on.
    #[inline(always)]
    fn push_vector<S: Simd>(&mut self, simd: S, bytes: &[u8]) -> usize {
        let all = |byte| S::u8s::splat(simd, byte);
        let raw = S::u8s::from_slice(simd, bytes);
        // Of what counts: digits have the bit that makes letters lower.
        let lower = raw | all(0x20);
        let letters = lower.simd_ge(all(b'a')) & lower.simd_le(all(b'z'));
        let counts = letters | raw.simd_ge(all(b'0')) & raw.simd_le(all(b'9'));
        self.bytes[self.end..][..S::u8s::LEN].copy_from_slice(lower.compress(counts).as_slice());
        let beyond = raw.simd_ge(all(0x80)).to_bitmask();
        let (mut counts, mut ascii) = (counts.to_bitmask(), S::u8s::LEN);
        if beyond != 0 {
            ascii = beyond.trailing_zeros() as usize;
            counts &= !(u64::MAX << ascii);
        }
        self.end += counts.count_ones() as usize;
        ascii
    }

    /// The beginning of a text whose first character is beyond ASCII, of which it gives the length. Words of such a script
    /// have spaces and stops between them, which are taken along.
    #[cold]
    fn push_beyond(&mut self, text: &str) -> usize {
        let mut ascii = 0;
        for (at, c) in text.char_indices() {
            if ascii >= GO_ON || self.end >= ROOM {
                return at;
            }
            ascii = if c.is_ascii() { ascii + 1 } else { 0 };
            self.end += letters::write_lower(c, &mut self.bytes[self.end..]);
        }
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<u8> {
        let mut kept = Kept::new();
        assert_eq!(kept.fill(text), "");
        kept.bytes().to_vec()
    }

    #[test]
    fn case_space_and_punctuation_do_not_count() {
        assert_eq!(kept("He said: \"Go-on\",\n\tÄrger №1"), "hesaidgoonärger1".as_bytes());
        assert_eq!(kept("He said: \"Go-on\",\n\tA1"), b"hesaidgoona1");
    }

    #[test]
    fn words_and_characters_are_kept_alike() {
        let ascii: String = (0..128u8).map(char::from).collect();
        for from in 0..ascii.len() {
            let slowly = ascii[from..].chars().filter(char::is_ascii_alphanumeric);
            assert_eq!(kept(&ascii[from..]), slowly.collect::<String>().to_ascii_lowercase().as_bytes());
        }
    }

    /// The levels of this machine.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        let mut levels = vec![best, Level::baseline()];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(best.as_avx2().map(Level::Avx2));
            levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        }
        levels
    }

    #[test]
    fn every_choice_of_eight_is_pushed_together_by_every_level_of_instructions() {
        for level in levels() {
            for chosen in 0..256_u32 {
                let eight: String = (0..8)
                    .map(|place| if chosen >> place & 1 == 1 { char::from(b'1' + place) } else { '-' })
                    .collect();
                // Wherever in a vector they stand.
                let text = eight.repeat(11) + &eight[..7];
                let mut buffer = Kept::new();
                assert_eq!(buffer.fill_at(level, &text), "");
                assert_eq!(buffer.bytes(), text.replace('-', "").as_bytes(), "{text} with {level:?}");
            }
        }
    }

    #[test]
    fn a_long_text_takes_several_fillings() {
        let mut buffer = Kept::new();
        let text = "ab ".repeat(4000);
        let rest = buffer.fill(&text);
        assert!(!rest.is_empty() && (ROOM - FULL..=ROOM).contains(&buffer.bytes().len()));
        let kept = buffer.bytes().to_vec();
        buffer.forget_before(1);
        assert_eq!(buffer.bytes(), &kept[kept.len() - (GRAM - 1)..]);
    }

    #[test]
    fn vectors_stop_at_a_character_beyond_ascii_and_go_on_behind_it() {
        for level in levels() {
            for before in 0..150 {
                for beyond in ["—", "ä", "字", "Ж, Щ"] {
                    let text = format!("{}{beyond}{}", &"ab-9".repeat(40)[..before], "xY 0".repeat(30));
                    let mut buffer = Kept::new();
                    assert_eq!(buffer.fill_at(level, &text), "");
                    let slowly: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
                    assert_eq!(buffer.bytes(), slowly.to_lowercase().as_bytes(), "{text} with {level:?}");
                }
            }
        }
    }

    #[test]
    fn characters_that_get_longer_do_not_run_over() {
        // Two bytes that become three.
        let text = "\u{130}".repeat(5000);
        let (mut buffer, mut rest, mut whole) = (Kept::new(), &*text, Vec::new());
        while !rest.is_empty() {
            rest = buffer.fill(rest);
            whole.extend_from_slice(buffer.bytes());
            buffer.clear();
        }
        assert_eq!(whole, text.to_lowercase().as_bytes());
    }
}
