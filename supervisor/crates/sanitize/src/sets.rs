//! Sets of bytes, made when this is compiled, and asked about 64 bytes at once.

use fearless_simd::prelude::*;
use fearless_simd::u8x64;

/// How many bytes are asked about at once: as many as a word has bits.
pub(crate) const BLOCK: usize = 64;

/// Eight sets as vectors look them up: of the low half of a byte, and of the high half, a bit for each set that has such a
/// byte.
///
/// A byte is taken for a member if each of its halves occurs in some member, so a set may come out larger than it is, never
/// smaller. The tables of 16 are repeated to the width of a block, and aligned like
/// one, so that none is read in two pieces.
#[repr(align(64))]
pub(crate) struct Halves([[u8; BLOCK]; 2]);

impl Halves {
    pub(crate) const fn of(sets: &[Set; 8]) -> Self {
        let mut halves = [[0; BLOCK]; 2];
        let mut set = 0;
        while set < sets.len() {
            let mut byte = 0;
            while byte < 256 {
                if sets[set].0[byte] {
                    let mut lane = 0;
                    while lane < BLOCK {
                        halves[0][lane + byte % 16] |= 1 << set;
                        halves[1][lane + byte / 16] |= 1 << set;
                        lane += 16;
                    }
                }
                byte += 1;
            }
            set += 1;
        }
        Self(halves)
    }

    /// The sets that the byte may be in.
    #[cfg(test)]
    pub(crate) fn of_byte(&self, byte: u8) -> u8 {
        self.0[0][usize::from(byte % 16)] & self.0[1][usize::from(byte / 16)]
    }

    /// Of each byte the sets that it may be in.
    #[inline(always)]
    pub(crate) fn look_up<S: Simd>(&self, simd: S, bytes: u8x64<S>) -> u8x64<S> {
        let [low, high] = &self.0;
        let lows = u8x64::from_slice(simd, low).swizzle_dyn_within_blocks(bytes & u8x64::splat(simd, 0x0f));
        let highs = u8x64::from_slice(simd, high).swizzle_dyn_within_blocks(bytes >> 4);
        lows & highs
    }
}

/// A bit for each byte that has any of the wanted ones.
#[inline(always)]
pub(crate) fn any<S: Simd>(simd: S, bits: u8x64<S>, wanted: u8) -> u64 {
    !(bits & u8x64::splat(simd, wanted)).simd_eq(u8x64::splat(simd, 0)).to_bitmask()
}

/// A set of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Set([bool; 256]);

impl Set {
    /// Every byte.
    pub(crate) const ALL: Self = Self([true; 256]);

    /// Those beyond ASCII.
    pub(crate) const BEYOND: Self = {
        let mut set = Self([false; 256]);
        let mut byte = 0x80;
        while byte < 256 {
            set.0[byte] = true;
            byte += 1;
        }
        set
    };

    pub(crate) const fn of(bytes: &[u8]) -> Self {
        let mut set = Self([false; 256]);
        let mut index = 0;
        while index < bytes.len() {
            set.0[bytes[index] as usize] = true;
            index += 1;
        }
        set
    }

    pub(crate) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    pub(crate) const fn or(mut self, other: Self) -> Self {
        let mut byte = 0;
        while byte < 256 {
            self.0[byte] |= other.0[byte];
            byte += 1;
        }
        self
    }
}
