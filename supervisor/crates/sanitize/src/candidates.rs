//! The first stage of a scan: which bytes could begin anything at all, 64 of them at a time.
//!
//! [`may_begin`] is written in comparisons without a branch, so the compiler turns the loop over a chunk into
//! vector instructions that every target has. It asks little: a table of exact rules would have to be looked up
//! byte by byte. What passes goes to [`crate::quick`], which asks the rest.

/// How many bytes are judged at once: as many as a word has bits.
const CHUNK: usize = 64;

/// The places of a text where something may begin, in order.
pub(crate) struct Candidates<'t> {
    bytes: &'t [u8],
    /// Where the chunk begins that `places` tells of.
    base: usize,
    /// A bit for each byte of the chunk.
    places: u64,
}

impl<'t> Candidates<'t> {
    pub(crate) fn new(bytes: &'t [u8]) -> Self {
        Self { bytes, base: 0, places: places(bytes, 0) }
    }

    /// The first one at or after `from`. What lies in front of `from` is gone for good.
    #[inline]
    pub(crate) fn next(&mut self, from: usize) -> Option<usize> {
        let behind = from.saturating_sub(self.base);
        if behind >= CHUNK {
            self.base = from;
            self.places = places(self.bytes, from);
        } else {
            self.places &= u64::MAX << behind;
        }
        while self.places == 0 {
            self.base += CHUNK;
            if self.base >= self.bytes.len() {
                return None;
            }
            self.places = places(self.bytes, self.base);
        }
        Some(self.base + self.places.trailing_zeros() as usize)
    }
}

/// The candidates among the 64 bytes from `base` on.
#[inline]
fn places(bytes: &[u8], base: usize) -> u64 {
    let rest = bytes.get(base..).unwrap_or_default();
    match rest.first_chunk() {
        Some(chunk) => judge(chunk),
        None => last_places(rest),
    }
}

/// The same at the end, where less than a chunk and its follower is left. Spaces are put behind the last byte: they
/// follow what may stand in front of an end, and begin nothing.
#[cold]
fn last_places(rest: &[u8]) -> u64 {
    let mut chunk = [b' '; CHUNK + 1];
    chunk[..rest.len()].copy_from_slice(rest);
    judge(&chunk)
}

#[inline]
fn judge(chunk: &[u8; CHUNK + 1]) -> u64 {
    let mut lanes = [0u8; CHUNK];
    if chunk.is_ascii() {
        for (index, lane) in lanes.iter_mut().enumerate() {
            *lane = u8::from(may_begin(chunk[index], chunk[index + 1]));
        }
    } else {
        for (index, lane) in lanes.iter_mut().enumerate() {
            *lane = u8::from(may_begin(chunk[index], chunk[index + 1]) | may_lead(chunk[index]));
        }
    }
    pack(&lanes)
}

/// Eight lanes of 0 or 1 become eight bits: the factor moves lane `i` to bit `56 + i`, and no sums carry over.
#[inline]
fn pack(lanes: &[u8; CHUNK]) -> u64 {
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = lanes.as_chunks::<8>();
    let mut places = 0;
    for (index, word) in words.iter().enumerate() {
        places |= (u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56) << (8 * index);
    }
    places
}

/// Whether the ASCII character `byte` may begin something, `next` being behind it.
///
/// The openers, the escapes, line breaks and every other control character but the tab; a quote only in front of
/// what the keys that matter begin with, because JSON is full of quotes; whatever stands in front of a colon and may end
/// the name of a speaker.
#[inline]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a branch would keep the loop from becoming vector instructions"
)]
pub(crate) fn may_begin(byte: u8, next: u8) -> bool {
    let letter = next | 0x20;
    // `b` and `d` begin no key that matters; to ask for the others one by one would take longer.
    let key = (b'a'..=b'f').contains(&letter)
        | (letter == b't')
        | (next == b'_')
        | (next == b'-')
        | (next <= b' ')
        | is_foreign(next);
    ((byte < b' ') & (byte != b'\t'))
        | (byte == b'<')
        | (byte == b'[')
        | (byte == b'\\')
        | (((byte == b'`') | (byte == b'#')) & ((next == byte) | is_foreign(next) | (next == b' ')))
        | (byte == b'%')
        | (byte == b'&')
        | ((byte == b'|') & (next == b'>'))
        | (byte == b'~')
        | (byte == 0x7f)
        | ((byte == b'"') & key)
        | ((next == b':') & (byte != b'"'))
}

/// Whether the byte begins a character that may fold to another, or spell one.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "see may_begin")]
fn is_foreign(byte: u8) -> bool {
    (byte >= 0x80) | (byte == b'&') | (byte == b'%') | (byte == b'\\')
}

/// Whether some character that begins with this byte is invisible, a control, or passes for an opener: U+0080–U+00BF,
/// U+0280–U+02FF (ʺ ˂ ˋ), U+0340–U+037F (͏), U+0580–U+063F (։ ׃), U+1000–U+3FFF, U+A000–U+AFFF (꞉ ꓽ), U+F000–U+FFFF, and the
/// planes of 0x1xxxx and 0xExxxx.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "see may_begin")]
pub(crate) fn may_lead(byte: u8) -> bool {
    (byte == 0xc2)
        | (0xca..=0xcd).contains(&byte)
        | (0xd6..=0xd8).contains(&byte)
        | (0xe1..=0xe3).contains(&byte)
        | (byte == 0xea)
        | (byte >= 0xef)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_their_borders_hide_nothing() {
        for length in 0..200 {
            for at in 0..length {
                let mut bytes = vec![b'x'; length];
                bytes[at] = b'<';
                let mut candidates = Candidates::new(&bytes);
                assert_eq!(candidates.next(0), Some(at), "{at} of {length}");
                assert_eq!(candidates.next(at), Some(at));
                assert_eq!(candidates.next(at + 1), None);
            }
        }
    }

    #[test]
    fn places_can_be_skipped() {
        let bytes = b"<x".repeat(200);
        let mut candidates = Candidates::new(&bytes);
        assert_eq!(candidates.next(3), Some(4));
        assert_eq!(candidates.next(301), Some(302));
        assert_eq!(candidates.next(399), None);
    }
}
