//! Eight bytes in a word, classified at once without a branch. The lengths of names in real text follow no
//! pattern, and a loop over their bytes spends most of its time on mispredicted ends.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const DOTS: u64 = ONES * b'.' as u64;

/// Up to eight bytes of text; those behind its end are 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EightBytes(u64);

impl EightBytes {
    #[inline]
    pub(crate) fn at(bytes: &[u8], at: usize) -> Self {
        let rest = bytes.get(at..).unwrap_or_default();
        match rest.first_chunk() {
            Some(chunk) => Self(u64::from_le_bytes(*chunk)),
            None => Self::end(rest),
        }
    }

    #[cold]
    fn end(rest: &[u8]) -> Self {
        let mut chunk = [0; 8];
        chunk[..rest.len()].copy_from_slice(rest);
        Self(u64::from_le_bytes(chunk))
    }

    /// The byte at `index`; 0 from index 8 on.
    #[inline]
    pub(crate) fn byte(self, index: usize) -> u8 {
        self.0.checked_shr(8 * index as u32).unwrap_or(0) as u8
    }

    /// How many ASCII letters and digits it begins with.
    #[inline]
    pub(crate) fn word_length(self) -> usize {
        leading(self.alphanumeric())
    }

    /// How many spaces, tabs and form feeds it begins with.
    #[inline]
    pub(crate) fn indent(self) -> usize {
        leading(self.equal(b' ') | self.equal(b'\t') | self.equal(b'\x0c'))
    }

    /// How many letters, digits, hyphens and white space it begins with.
    #[inline]
    pub(crate) fn words_length(self) -> usize {
        // Tab, line feed, form feed and return; the vertical tab between them does no harm.
        leading(self.alphanumeric() | self.equal(b' ') | self.equal(b'-') | self.within(0, b'\t', b'\r'))
    }

    /// The first `length` bytes; the others become full stops.
    #[inline]
    pub(crate) fn first(self, length: usize) -> Self {
        let others = u64::MAX.checked_shl(8 * length as u32).unwrap_or(0);
        Self((self.0 & !others) | (DOTS & others))
    }

    fn alphanumeric(self) -> u64 {
        self.within(0x20, b'a', b'z') | self.within(0, b'0', b'9')
    }

    /// The high bits of the ASCII bytes that, with `bits` set, lie between `from` and `to`.
    fn within(self, bits: u8, from: u8, to: u8) -> u64 {
        // Without the high bits no sum of two bytes carries over into the next one.
        let low = (self.0 | (ONES * u64::from(bits))) & !HIGH;
        let at_least = low + ONES * u64::from(0x80 - from);
        let beyond = low + ONES * u64::from(0x7f - to);
        at_least & !beyond & !self.0 & HIGH
    }

    fn equal(self, byte: u8) -> u64 {
        self.within(0, byte, byte)
    }
}

/// How many leading bytes have their high bit set.
#[inline]
fn leading(high: u64) -> usize {
    ((!high & HIGH).trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_judged_as_the_standard_library_does() {
        for byte in 0..=u8::MAX {
            let word = EightBytes::at(&[b'a', byte, 0xff, b'z', 0, 0, 0, 0], 0);
            assert_eq!(word.word_length() > 1, byte.is_ascii_alphanumeric(), "{byte:#x}");
            let joined = byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'\t'..=b'\r');
            assert_eq!(word.words_length() > 1, joined, "{byte:#x}");
            let word = EightBytes::at(&[byte, b'a'], 0);
            assert_eq!(word.indent() > 0, matches!(byte, b' ' | b'\t' | b'\x0c'), "{byte:#x}");
        }
        assert_eq!(EightBytes::at(b"abcdefgh", 0).word_length(), 8);
        assert_eq!(EightBytes::at(b"abcdefgh", 6).word_length(), 2);
        assert_eq!(EightBytes::at(b"abc", 7).word_length(), 0);
        assert_eq!(
            (EightBytes::at(b"abcdefgh", 0).byte(7), EightBytes::at(b"abcdefgh", 0).byte(8)),
            (b'h', 0)
        );
        assert_eq!(EightBytes::at(b"abcdefgh", 0).first(2).byte(2), b'.');
    }
}
