//! Normalizes text for comparison: letters and digits only, in lower case.
//!
//! They are written into a buffer of fixed size. Fingerprints are taken from it before it is filled again, so
//! a text of any length allocates nothing. ASCII is processed with the available vector instructions, without
//! a branch for each byte: whether a byte counts is practically random.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

use super::gram_length::GRAM_BYTES;
use super::letters;

/// The size of the buffer: enough for most answers and for efficient loops, small enough for the L1 cache.
const CAPACITY: usize = 4096;

/// With less free space than this the buffer counts as full: filling the rest would take ever smaller steps.
const MIN_FREE: usize = 128;

/// The widest vector: this many bytes are written without a bounds check for each, and what is written behind
/// the last counted byte is overwritten next.
const MAX_VECTOR_BYTES: usize = 64;

/// What may be written behind [`CAPACITY`]: a vector, or a character in lower case, which is up to three
/// characters.
const SLACK: usize = MAX_VECTOR_BYTES;

/// After this many ASCII characters vectors are used again: more than stand between two words of another
/// script.
const RESUME_AFTER: usize = 4;

/// The normalized part of a text.
pub(super) struct NormalizedBuffer {
    bytes: [u8; CAPACITY + SLACK],
    end: usize,
}

impl NormalizedBuffer {
    pub(super) fn new() -> Self {
        Self { bytes: [0; CAPACITY + SLACK], end: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Normalizes as much of a text as fits, and returns the rest of it.
    pub(super) fn fill<'t>(&mut self, text: &'t str) -> &'t str {
        self.fill_at(Level::new(), text)
    }

    /// The same with the instructions of this level.
    fn fill_at<'t>(&mut self, level: Level, text: &'t str) -> &'t str {
        let mut rest = text;
        while !rest.is_empty() && self.end + MIN_FREE <= CAPACITY {
            // ASCII never gets longer.
            let head = &rest.as_bytes()[..rest.len().min(CAPACITY - self.end)];
            let ascii = dispatch!(level, simd => self.push(simd, head));
            let taken = if ascii > 0 { ascii } else { self.push_non_ascii(rest) };
            rest = &rest[taken..];
        }
        rest
    }

    /// Drops the bytes before the next n-gram, where an n-gram begins at every `stride`th position.
    pub(super) fn discard_hashed(&mut self, stride: usize) {
        let pieces = self.end.saturating_sub(GRAM_BYTES - 1).div_ceil(stride);
        // A stride is shorter than an n-gram, so the next one begins within the buffer.
        let next = pieces * stride;
        self.bytes.copy_within(next..self.end, 0);
        self.end -= next;
    }

    /// Appends bytes that fit, up to the first non-ASCII byte, and returns its index.
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
        let mut last = [0; MAX_VECTOR_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        let ascii = self.push_vector(simd, &last[..S::u8s::LEN]);
        bytes.len() - rest.len() + ascii.min(rest.len())
    }

    /// The same for one vector. All bytes are written, compacted; only letters and digits advance the end.
    #[inline(always)]
    fn push_vector<S: Simd>(&mut self, simd: S, bytes: &[u8]) -> usize {
        let all = |byte| S::u8s::splat(simd, byte);
        let raw = S::u8s::from_slice(simd, bytes);
        // Digits have the bit that converts letters to lower case.
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

    /// Normalizes the beginning of a text whose first character is beyond ASCII, and returns its length. In
    /// such scripts spaces and full stops stand between words; they are included.
    #[cold]
    fn push_non_ascii(&mut self, text: &str) -> usize {
        let mut ascii = 0;
        for (at, c) in text.char_indices() {
            if ascii >= RESUME_AFTER || self.end >= CAPACITY {
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
        let mut kept = NormalizedBuffer::new();
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
                let mut buffer = NormalizedBuffer::new();
                assert_eq!(buffer.fill_at(level, &text), "");
                assert_eq!(buffer.bytes(), text.replace('-', "").as_bytes(), "{text} with {level:?}");
            }
        }
    }

    #[test]
    fn a_long_text_takes_several_fillings() {
        let mut buffer = NormalizedBuffer::new();
        let text = "ab ".repeat(4000);
        let rest = buffer.fill(&text);
        assert!(!rest.is_empty() && (CAPACITY - MIN_FREE..=CAPACITY).contains(&buffer.bytes().len()));
        let kept = buffer.bytes().to_vec();
        buffer.discard_hashed(1);
        assert_eq!(buffer.bytes(), &kept[kept.len() - (GRAM_BYTES - 1)..]);
    }

    #[test]
    fn vectors_stop_at_a_character_beyond_ascii_and_go_on_behind_it() {
        for level in levels() {
            for before in 0..150 {
                for beyond in ["—", "ä", "字", "Ж, Щ"] {
                    let text = format!("{}{beyond}{}", &"ab-9".repeat(40)[..before], "xY 0".repeat(30));
                    let mut buffer = NormalizedBuffer::new();
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
        let (mut buffer, mut rest, mut whole) = (NormalizedBuffer::new(), &*text, Vec::new());
        while !rest.is_empty() {
            rest = buffer.fill(rest);
            whole.extend_from_slice(buffer.bytes());
            buffer.clear();
        }
        assert_eq!(whole, text.to_lowercase().as_bytes());
    }
}
