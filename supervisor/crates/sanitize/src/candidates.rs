//! The first stage of a scan: at which bytes anything may begin at all, 64 of them at a time.
//!
//! It asks what vectors can answer of a few bytes in a row. What passes goes to [`crate::quick`], which asks the rest.

mod rules;
mod wide;

use self::wide::Carry;
use crate::sets::BLOCK;

/// How many blocks are judged at a time. More would be for nothing in short texts; fewer would set the tables up more often.
const BATCH: usize = 32;

/// The places of a text where something may begin, in order.
pub(crate) struct Candidates<'t> {
    /// The text in blocks, and what is left behind the last whole one.
    blocks: &'t [[u8; BLOCK]],
    rest: &'t [u8],
    carry: Carry,
    /// What was judged last: a bit for each byte.
    batch: [u64; BATCH],
    /// How many blocks of the batch are not handed out, or judged at all.
    judged: usize,
    /// The block of the batch that is being handed out, the byte it begins at, and what is left of it.
    index: usize,
    base: usize,
    places: u64,
}

impl<'t> Candidates<'t> {
    #[inline]
    pub(crate) fn new(bytes: &'t [u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks();
        let mut candidates = Self {
            blocks,
            rest,
            carry: Carry::default(),
            batch: [0; BATCH],
            judged: 0,
            index: 0,
            base: 0,
            places: 0,
        };
        candidates.judge();
        candidates
    }

    /// The first one at or after `from`. What lies in front of `from` is gone for good.
    #[inline]
    pub(crate) fn next(&mut self, from: usize) -> Option<usize> {
        while from >= self.base + BLOCK {
            self.go_on()?;
        }
        self.places &= u64::MAX << from.saturating_sub(self.base);
        while self.places == 0 {
            self.skip_empty();
            self.go_on()?;
        }
        Some(self.base + self.places.trailing_zeros() as usize)
    }

    /// Turns to the next block.
    #[inline]
    fn go_on(&mut self) -> Option<()> {
        self.index += 1;
        self.base += BLOCK;
        if self.index >= self.judged {
            self.judge();
        }
        self.places = self.batch[..self.judged].get(self.index).copied()?;
        Some(())
    }

    /// Turns to the last block in front of the next one that has places, as far as is judged. Nearly all blocks have none.
    #[inline]
    fn skip_empty(&mut self) {
        let later = self.batch[..self.judged].get(self.index + 1..).unwrap_or_default();
        let empty = later.iter().position(|places| *places != 0).unwrap_or(later.len());
        self.index += empty;
        self.base += empty * BLOCK;
    }

    /// Judges the next blocks. They come in order, because each leaves something to the one behind it.
    fn judge(&mut self) {
        self.judged = 0;
        if self.blocks.is_empty() && self.rest.is_empty() {
            return;
        }
        let (now, later) = self.blocks.split_at(self.blocks.len().min(BATCH));
        let mut end = [0; BLOCK];
        let ends = later.is_empty() && now.len() < BATCH;
        self.judged = now.len() + usize::from(ends && !self.rest.is_empty());
        if later.is_empty() {
            end[..self.rest.len()].copy_from_slice(self.rest);
        }
        wide::judge(now, later.first().unwrap_or(&end), &mut self.carry, &mut self.batch[..self.judged]);
        if self.judged > now.len() {
            // Behind the end there are zeros, which look like control characters.
            self.batch[now.len()] &= !(u64::MAX << self.rest.len());
            self.rest = &[];
        }
        (self.blocks, self.index) = (later, 0);
        self.places = self.batch[..self.judged].first().copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_borders_hide_nothing() {
        for length in 0..200 {
            for at in 0..length {
                let mut bytes = vec![b'x'; length];
                bytes[at] = b'[';
                let mut candidates = Candidates::new(&bytes);
                assert_eq!(candidates.next(0), Some(at), "{at} of {length}");
                assert_eq!(candidates.next(at), Some(at));
                assert_eq!(candidates.next(at + 1), None);
            }
        }
    }

    #[test]
    fn places_can_be_skipped() {
        let bytes = b"[x".repeat(200);
        let mut candidates = Candidates::new(&bytes);
        assert_eq!(candidates.next(3), Some(4));
        assert_eq!(candidates.next(301), Some(302));
        assert_eq!(candidates.next(399), None);
    }
}
