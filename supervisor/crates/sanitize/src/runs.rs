//! Finds long runs of base64 digits, 64 bytes at a time.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

use crate::sets::{BLOCK, NibbleTables, Set, any};

/// The shortest run that counts.
pub(crate) const MIN_RUN: usize = 24;

/// Both alphabets; the nibbles of none of these sets mix, so they are exact.
static DIGITS: NibbleTables = NibbleTables::of(&[
    Set::of(b"0123456789"),
    Set::of(b"ABCDEFGHIJKLMNO"),
    Set::of(b"PQRSTUVWXYZ"),
    Set::of(b"abcdefghijklmno"),
    Set::of(b"pqrstuvwxyz"),
    Set::of(b"+-/"),
    Set::of(b"_"),
    Set::of(b""),
]);

/// Where the first run of at least [`MIN_RUN`] digits begins.
pub(crate) fn first(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < MIN_RUN {
        return None;
    }
    let (blocks, rest) = bytes.as_chunks();
    // The bytes behind the end are not digits.
    let mut end = [0; BLOCK];
    end[..rest.len()].copy_from_slice(rest);
    dispatch!(Level::new(), simd => first_in(simd, blocks, &end))
}

#[inline(always)]
fn first_in<S: Simd>(simd: S, blocks: &[[u8; BLOCK]], end: &[u8; BLOCK]) -> Option<usize> {
    // The number of digits at the end of the blocks so far.
    let mut before = 0;
    for (index, block) in blocks.iter().chain([end]).enumerate() {
        let digits = any(simd, DIGITS.look_up(simd, u8x64::from_slice(simd, block)), u8::MAX);
        if before + digits.trailing_ones() as usize >= MIN_RUN {
            return Some(index * BLOCK - before);
        }
        // Where runs of 2, 4, 8, 16 and 24 begin.
        let two = digits & digits >> 1;
        let four = two & two >> 2;
        let eight = four & four >> 4;
        let enough = eight & eight >> 8 & eight >> 16;
        if enough != 0 {
            return Some(index * BLOCK + enough.trailing_zeros() as usize);
        }
        before = digits.leading_ones() as usize;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_wherever_they_stand_if_they_are_long_enough() {
        for at in 0..150 {
            for length in 20..150 {
                let mut bytes = vec![b'.'; 310];
                bytes[at..at + length].fill(b'a');
                bytes[at + length + 1..].fill(b'/');
                let found = if length < MIN_RUN { at + length + 1 } else { at };
                assert_eq!(first(&bytes), Some(found), "{length} at {at}");
                assert_eq!(first(&bytes[..at + length]), (length >= MIN_RUN).then_some(at));
            }
        }
    }

    #[test]
    fn the_digits_are_those_of_both_alphabets() {
        for byte in 0..=u8::MAX {
            let digit = byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
            assert_eq!(first(&[byte; MIN_RUN]).is_some(), digit, "{byte:#x}");
        }
    }
}
