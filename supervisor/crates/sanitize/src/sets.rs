//! Byte sets that are built at compile time and tested for 64 bytes at once.

use fearless_simd::prelude::*;
use fearless_simd::u8x64;

/// How many bytes are tested at once: as many as a word has bits.
pub(crate) const BLOCK: usize = 64;

/// Eight sets as lookup tables for vector instructions: for the low and for the high nibble of a byte, a bit
/// for each set with such a byte.
///
/// A byte counts as a member if each of its nibbles occurs in some member, so a set may be too large, never
/// too small. The tables of 16 are repeated to the width of a block and aligned to it, so that a load does
/// not cross a cache line.
#[repr(align(64))]
pub(crate) struct NibbleTables([[u8; BLOCK]; 2]);

impl NibbleTables {
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

    /// For each byte the sets that it may be in.
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

    /// The non-ASCII bytes.
    pub(crate) const NON_ASCII: Self = {
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
