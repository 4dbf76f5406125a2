//! The first stage of a scan: finds the bytes at which syntax may begin, 64 bytes at a time.
//!
//! It checks what vector instructions can decide from a few adjacent bytes. Candidates go to
//! [`crate::prefilter`], which checks the rest.

mod rules;
mod simd_blocks;

use self::simd_blocks::BlockCarry;
use crate::sets::BLOCK;

/// How many blocks are classified at a time. Short texts gain nothing from more; with fewer the tables are
/// loaded more often.
const BATCH: usize = 32;

/// The offsets of a text at which syntax may begin, in order.
pub(crate) struct Candidates<'t> {
    /// The text in blocks, and the rest behind the last whole one.
    blocks: &'t [[u8; BLOCK]],
    rest: &'t [u8],
    carry: BlockCarry,
    /// The last classified blocks: a bit for each byte.
    batch: [u64; BATCH],
    /// How many blocks of the batch are not returned yet, or not classified.
    classified: usize,
    /// The current block of the batch, the offset of its first byte, and its bits that are not returned yet.
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
            carry: BlockCarry::default(),
            batch: [0; BATCH],
            classified: 0,
            index: 0,
            base: 0,
            places: 0,
        };
        candidates.classify_batch();
        candidates
    }

    /// The first candidate at or after `from`. Earlier ones are dropped.
    #[inline]
    pub(crate) fn next(&mut self, from: usize) -> Option<usize> {
        while from >= self.base + BLOCK {
            self.advance()?;
        }
        self.places &= u64::MAX << from.saturating_sub(self.base);
        while self.places == 0 {
            self.skip_empty();
            self.advance()?;
        }
        Some(self.base + self.places.trailing_zeros() as usize)
    }

    /// Goes to the next block.
    #[inline]
    fn advance(&mut self) -> Option<()> {
        self.index += 1;
        self.base += BLOCK;
        if self.index >= self.classified {
            self.classify_batch();
        }
        self.places = self.batch[..self.classified].get(self.index).copied()?;
        Some(())
    }

    /// Goes to the block before the next one with candidates, within the batch. Nearly all blocks have none.
    #[inline]
    fn skip_empty(&mut self) {
        let later = self.batch[..self.classified].get(self.index + 1..).unwrap_or_default();
        let empty = later.iter().position(|places| *places != 0).unwrap_or(later.len());
        self.index += empty;
        self.base += empty * BLOCK;
    }

    /// Classifies the next blocks. In order, because each passes state to the next.
    fn classify_batch(&mut self) {
        self.classified = 0;
        if self.blocks.is_empty() && self.rest.is_empty() {
            return;
        }
        let (now, later) = self.blocks.split_at(self.blocks.len().min(BATCH));
        let mut end = [0; BLOCK];
        let ends = later.is_empty() && now.len() < BATCH;
        self.classified = now.len() + usize::from(ends && !self.rest.is_empty());
        if later.is_empty() {
            end[..self.rest.len()].copy_from_slice(self.rest);
        }
        simd_blocks::classify(
            now,
            later.first().unwrap_or(&end),
            &mut self.carry,
            &mut self.batch[..self.classified],
        );
        if self.classified > now.len() {
            // Behind the end there are zeros, which look like control characters.
            self.batch[now.len()] &= !(u64::MAX << self.rest.len());
            self.rest = &[];
        }
        (self.blocks, self.index) = (later, 0);
        self.places = self.batch[..self.classified].first().copied().unwrap_or(0);
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
