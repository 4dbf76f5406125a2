//! What is stored as the value of a key: the number of its write, a digest of key and value, and the value.
//!
//! The number tells a write of this process from another one, when an answer got lost. The digest shows a value that was
//! damaged, and one of another key.

use sha2::{Digest as _, Sha256};
use talon_store::Error;

/// The first bytes, with the version of this form.
const MAGIC: [u8; 2] = *b"T1";
/// The length of the number, and of the digest: 128 bits of SHA-256 are enough against damage and mistakes, and a backend that
/// wants to forge a record can compute it anyway.
const PART_BYTES: usize = 16;
/// How much longer a record is than its value.
pub(super) const OVERHEAD_BYTES: usize = MAGIC.len() + 2 * PART_BYTES;

/// The number of a write.
pub(super) type WriteId = [u8; PART_BYTES];

/// A new number.
pub(super) fn new_write_id() -> WriteId {
    ulid::Ulid::generate().to_bytes()
}

/// The record of a value.
pub(super) fn encode(id: WriteId, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(OVERHEAD_BYTES + value.len());
    record.extend(MAGIC);
    record.extend(id);
    record.extend(digest(id, key, value));
    record.extend(value);
    record
}

/// The number and the value of a record.
///
/// # Errors
/// [`Error::Unreadable`] if it is none, was damaged, or is another key's.
pub(super) fn decode(key: &[u8], record: &[u8]) -> Result<(WriteId, Vec<u8>), Error> {
    let unreadable =
        |why: &str| Error::Unreadable { what: "value of a storage backend", why: why.to_owned() };
    let rest = record.strip_prefix(&MAGIC).ok_or_else(|| unreadable("talon-state did not write it"))?;
    let parts = rest.split_first_chunk::<PART_BYTES>();
    let (id, rest) = parts.ok_or_else(|| unreadable("it is too short"))?;
    let parts = rest.split_first_chunk::<PART_BYTES>();
    let (found, value) = parts.ok_or_else(|| unreadable("it is too short"))?;
    if digest(*id, key, value) != *found {
        return Err(unreadable("it was damaged, or belongs to another key: look at the backend's data"));
    }
    Ok((*id, value.to_vec()))
}

fn digest(id: WriteId, key: &[u8], value: &[u8]) -> [u8; PART_BYTES] {
    let mut hash = Sha256::new();
    hash.update(id);
    hash.update((key.len() as u64).to_be_bytes());
    hash.update(key);
    hash.update(value);
    let whole: [u8; 32] = hash.finalize().into();
    let mut part = [0; PART_BYTES];
    part.copy_from_slice(&whole[..PART_BYTES]);
    part
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Promises: EXT-102
        #[test]
        fn a_record_is_its_keys_and_whole(
            key in proptest::collection::vec(any::<u8>(), 1..40),
            value in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<proptest::sample::Index>(),
            flip in 1..=255_u8,
        ) {
            let id = new_write_id();
            let record = encode(id, &key, &value);
            prop_assert_eq!(record.len(), value.len() + OVERHEAD_BYTES);
            prop_assert_eq!(decode(&key, &record).expect("whole"), (id, value));
            let mut damaged = record.clone();
            damaged[at.index(record.len())] ^= flip;
            prop_assert!(decode(&key, &damaged).is_err());
            prop_assert!(decode(&key, &record[..at.index(record.len())]).is_err());
            let mut other = key;
            other.push(0);
            prop_assert!(decode(&other, &record).is_err());
        }
    }
}
