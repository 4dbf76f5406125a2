//! One record as bytes, and the search for whole records in damaged bytes.
//!
//! ```text
//! magic (3)  kind (1)  length of the body (4, LE)  checksum (8)  body: number (8, LE), data
//! ```
//!
//! The checksum is the beginning of the SHA-256 of kind, length and body.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// Marks the beginning of a record, so that the next whole one is found after damage.
const MAGIC: &[u8; 3] = b"\x1eev";
const CHECKSUM_BYTES: usize = 8;
const HEADER_BYTES: usize = MAGIC.len() + 1 + 4 + CHECKSUM_BYTES;
const NUMBER_BYTES: usize = 8;
/// The largest event, in bytes: a summary, 16 KiB of details and some fields. A larger one is refused.
pub const MAX_EVENT_BYTES: usize = 64 << 10;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// The beginning of a segment; its number is the first that the log ever gave.
    Head,
    /// An event.
    Event,
    /// A subscriber has acknowledged the events up to the number; the data is its name.
    Acknowledged,
}

impl RecordKind {
    fn byte(self) -> u8 {
        match self {
            Self::Head => 1,
            Self::Event => 2,
            Self::Acknowledged => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Head, Self::Event, Self::Acknowledged].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// A record within a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'b> {
    pub(crate) kind: RecordKind,
    pub(crate) number: u64,
    pub(crate) data: &'b [u8],
    /// Its length with header.
    pub(crate) bytes: usize,
}

/// Appends a record to `out`; returns its length. `data` has to be at most [`MAX_EVENT_BYTES`] long.
pub(crate) fn encode(kind: RecordKind, number: u64, data: &[u8], out: &mut Vec<u8>) -> usize {
    let length = u32::try_from(NUMBER_BYTES + data.len()).unwrap_or(u32::MAX).to_le_bytes();
    let number = number.to_le_bytes();
    let checksum = checksum(kind.byte(), length, &[&number, data]);
    let before = out.len();
    out.extend_from_slice(MAGIC);
    out.push(kind.byte());
    out.extend_from_slice(&length);
    out.extend_from_slice(&checksum);
    out.extend_from_slice(&number);
    out.extend_from_slice(data);
    out.len() - before
}

/// The record at the beginning of `bytes`, if there is a whole one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let rest_of_header = header.strip_prefix(MAGIC)?;
    let (&kind, rest_of_header) = rest_of_header.split_first()?;
    let (length, wanted) = rest_of_header.split_first_chunk::<4>()?;
    let body_bytes = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if !(NUMBER_BYTES..=NUMBER_BYTES + MAX_EVENT_BYTES).contains(&body_bytes) {
        return None;
    }
    let body = rest.get(..body_bytes)?;
    if checksum(kind, *length, &[body]) != *wanted {
        return None;
    }
    let (number, data) = body.split_first_chunk::<NUMBER_BYTES>()?;
    let kind = RecordKind::from_byte(kind)?;
    Some(Record { kind, number: u64::from_le_bytes(*number), data, bytes: HEADER_BYTES + body_bytes })
}

/// Calls `found` with each whole record and its offset. Returns the ranges that belong to none.
pub(crate) fn scan(bytes: &[u8], mut found: impl FnMut(usize, Record<'_>)) -> Vec<Range<usize>> {
    let mut damaged: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match decode(&bytes[at..]) {
            Some(record) => {
                found(at, record);
                at += record.bytes;
            }
            None => {
                let next = next_magic(bytes, at + 1);
                match damaged.last_mut() {
                    Some(last) if last.end == at => last.end = next,
                    _ => damaged.push(at..next),
                }
                at = next;
            }
        }
    }
    damaged
}

/// The offset of the next magic at or after `from`, or the end.
fn next_magic(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(MAGIC.len()).position(|window| window == MAGIC).map_or(bytes.len(), |at| from + at)
}

fn checksum(kind: u8, length: [u8; 4], body: &[&[u8]]) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update([kind]);
    hash.update(length);
    for part in body {
        hash.update(part);
    }
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&hash.finalize()[..CHECKSUM_BYTES]);
    checksum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_records_are_found_around_damage(
            data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8),
            noise in prop::collection::vec(any::<u8>(), 1..50),
            place in any::<prop::sample::Index>(),
        ) {
            let place = place.index(data.len() + 1);
            let mut bytes = Vec::new();
            for (number, data) in data.iter().enumerate() {
                if number == place {
                    bytes.extend_from_slice(&noise);
                }
                encode(RecordKind::Event, number as u64, data, &mut bytes);
            }
            if place == data.len() {
                bytes.extend_from_slice(&noise);
            }
            let mut found = Vec::new();
            let damaged = scan(&bytes, |_, record| found.push((record.number, record.data.to_vec())));
            let expected: Vec<_> = data.iter().enumerate().map(|(number, data)| (number as u64, data.clone())).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(damaged.iter().map(|range| range.len()).sum::<usize>(), noise.len());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let damaged = scan(&bytes, |_, _| {});
            prop_assert_eq!(damaged.iter().map(|range| range.len()).sum::<usize>(), bytes.len());
        }

        #[test]
        fn a_changed_byte_is_no_whole_record(data in prop::collection::vec(any::<u8>(), 0..100), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let mut bytes = Vec::new();
            encode(RecordKind::Event, 7, &data, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(decode(&bytes), None);
        }
    }
}
